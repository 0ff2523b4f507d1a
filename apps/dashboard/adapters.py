"""Versions of the adapters: where they came from, which one answers, and going back to another."""

import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.adapters import store
from apps.adapters.models import AdapterVersion, PointerMove, Policy, VersionState
from apps.adapters.services import move_pointer
from apps.dashboard.compare.learned import learned_by
from apps.dashboard.lists import chosen_id, chosen_word, listed
from apps.dashboard.measures import main_measures, measures
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.reasons import reason_of
from apps.evaluation.choosing.in_words import CHECKS, in_words
from kernel.errors import AttuneError
from kernel.rest.caller import Access
from kernel.streams import one_by_one

PEFT_FILES = ("adapter_config.json", "adapter_model.safetensors")
_CHUNK = 1 << 20
_LONGEST_REASON = 400


@require_safe
@tenant_page()
def adapters(request: HttpRequest, place: Place) -> HttpResponse:
    """List versions, newest first."""
    policy, state = chosen_id(request, "policy"), chosen_word(request, "state", VersionState.values)
    rows = AdapterVersion.objects.select_related("policy", "parent").defer("metrics")
    if policy is not None:
        rows = rows.filter(policy_id=policy)
    if state:
        rows = rows.filter(state=state)
    return place.show(
        request,
        "adapters",
        section="adapters",
        page=listed(request, rows),
        policies=Policy.objects.select_related("live").order_by("name"),
        states=VersionState.choices,
        chosen={"policy": str(policy or ""), "state": state},
    )


@require_safe
@tenant_page()
def adapter(request: HttpRequest, place: Place, version_id: uuid.UUID) -> HttpResponse:
    """Show one version: its lineage, the run and the turns it was made of, what the gate said."""
    found = (
        AdapterVersion.objects.select_related("policy__live", "parent")
        .prefetch_related("gate_results", "children")
        .filter(pk=version_id)
        .first()
    )
    if found is None:
        raise Http404
    run = getattr(found, "made_by_run", None)
    moves = PointerMove.objects.filter(to_version=found).select_related("from_version")
    return place.show(
        request,
        "adapter",
        section="adapters",
        version=found,
        run=run,
        learned=learned_by([run.pk])[run.pk] if run else None,
        main=main_measures(found.metrics),
        measures=measures(found.metrics),
        gate=[
            (result, CHECKS.get(result.check_name, ""), in_words(result.check_name, result.detail))
            for result in found.gate_results.all()
        ],
        moves=moves.order_by("-created_at")[:20],
        live=found.policy.live_id == found.pk,
        downloadable=all((store.absolute(found.path) / name).is_file() for name in PEFT_FILES),
    )


@require_POST
@tenant_page(needs=Access.MANAGE)
def point(request: HttpRequest, place: Place, policy_id: uuid.UUID) -> HttpResponse:
    """Let a policy answer from another version, or from the bare base, from the next request on."""
    policy = Policy.objects.filter(pk=policy_id).first()
    if policy is None:
        raise Http404
    value = request.POST.get("version", "")
    try:
        version_id = uuid.UUID(value) if value else None
    except ValueError as error:
        raise Http404 from error
    try:
        moved = move_pointer(
            policy_id=policy.pk,
            to_version_id=version_id,
            actor=place.actor,
            reason=reason_of(request, longest=_LONGEST_REASON, unsaid="chosen on the adapters' page"),
        )
    except AttuneError as error:
        messages.error(request, f"Nothing has moved: {error.message}.")
    else:
        now = moved.policy.live.number if moved.policy.live else 0
        messages.success(request, f"{policy.name} answers from version {now} now; it was {moved.before}.")
    return redirect("dashboard:adapters", tenant=place.tenant.slug)


@require_safe
@tenant_page(needs=Access.MANAGE)
def download(request: HttpRequest, place: Place, version_id: uuid.UUID) -> StreamingHttpResponse:
    """Send a version as a zip of a plain PEFT directory."""
    del request
    found = AdapterVersion.objects.filter(pk=version_id).first()
    if found is None:
        raise Http404
    folder = store.absolute(found.path)
    if not all((folder / name).is_file() for name in PEFT_FILES):
        raise Http404
    response = StreamingHttpResponse(one_by_one(_zipped(folder)), content_type="application/zip")
    response.headers["Content-Disposition"] = f'attachment; filename="{found.served_name}.zip"'
    return response


class _Sink:
    """A file that can only be written, and handed on piece by piece:
    so the archive is never whole in memory."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def taken(self) -> bytes:
        data, self._pieces = b"".join(self._pieces), []
        return data


def _zipped(folder: Path) -> Iterator[bytes]:
    """Yield a zip of the adapter's files, a piece at a time."""
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name in PEFT_FILES:
            with (folder / name).open("rb") as source, archive.open(name, "w", force_zip64=True) as target:
                while piece := source.read(_CHUNK):
                    target.write(piece)
                    yield sink.taken()
    yield sink.taken()
