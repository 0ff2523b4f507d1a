"""From a created version to the live one: preflight, load, probe, gate, pointer.

May be run again from any point, by several at once, after any crash: what is done is found done, and one
transaction decides at the end. Until then, and whenever it comes to nothing, the old version answers.
"""

import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from apps.adapters import placement, store
from apps.adapters.models import AdapterVersion, GateResult, PointerMove, Policy, VersionState
from apps.adapters.preflight import PreflightRefused, preflight
from apps.adapters.services import point
from apps.alerts import services as alerts
from apps.alerts.models import Event, Severity
from apps.engines import registry
from apps.engines.loading import Placed, Result
from apps.engines.replies import AdapterRefused, EngineUnavailable
from kernel import audit
from kernel.errors import AttuneError, NotFound, RateLimited, Unavailable

logger = logging.getLogger(__name__)

ACTOR = "system:publishing"
HELD_OUT = "held-out"
"""The check that decides between versions which passed all others."""

Choose = Callable[[AdapterVersion], str]
"""Looks at a version that passed its checks and is loaded; returns why it must not go live, or ""."""


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a version. live: it answers. ready:
    it could, but something newer was decided. refused."""

    version_id: uuid.UUID
    policy_id: uuid.UUID
    outcome: Literal["live", "ready", "refused"]
    reason: str


def publish(version_id: uuid.UUID, *, choose: Choose | None = None) -> Published:
    """Bring a created version live, or say why it is not. Must run in a scope that sees it.

    Raises EngineUnavailable where no engine could be asked, and what `choose` raises of what time mends
    (Unavailable, RateLimited): then nothing is decided, and it should be tried again later. What else
    `choose` raises would be raised for ever: the version is ready then, does not go live, and says why. One
    that the policy was moved away from is checked like any other, as it may be made live by hand, but not
    chosen: nothing it does would bring it live.
    """
    version = AdapterVersion.objects.filter(pk=version_id).first()
    if version is None:
        raise NotFound("there is no such version")
    if version.state != VersionState.CREATED:
        return _decided(version)
    try:
        checked = preflight(store.absolute(version.path), sha256=version.sha256)
        if (checked.rank, checked.alpha) != (version.rank, version.alpha):
            raise PreflightRefused(
                f"rank and alpha are {checked.rank} and {checked.alpha:g}, "
                f"the version says {version.rank} and {version.alpha}"
            )
        adapter = placement.desire(version)
    except AttuneError as error:
        return _refuse(version, "preflight", error.message, {})
    _gate(
        version, "preflight", passed=True, detail={"layers": checked.layers, "parameters": checked.parameters}
    )
    placed = placement.place(adapter)
    refused = [one for one in placed if one.result is Result.REFUSED]
    if refused:
        return _refuse(version, "probe", placement.reasons(refused), _answers(placed))
    if not any(one.result is Result.PROBED for one in placed):
        raise EngineUnavailable(f"no engine took the version: {placement.reasons(placed)}", retry_after_s=5.0)
    left_behind = why_left_behind(version)
    if left_behind or choose is None:
        return _make_ready(version, placed, left_behind)
    try:
        return _make_ready(version, placed, choose(version))
    except AttuneError as error:
        if mends_with_time(error):
            raise
        return _make_ready(version, placed, f"not chosen: {error.message}", broke=error.message)


def mends_with_time(error: AttuneError) -> bool:
    """Return whether what went wrong is only down, busy or not there yet:
    not so where files or an engine say no."""
    return isinstance(error, Unavailable | RateLimited) and not isinstance(error, AdapterRefused)


def why_left_behind(version: AdapterVersion) -> str:
    """Return why a version will not go live by itself as the policy's pointer stands now, or ""."""
    return _superseded(Policy.objects.get(pk=version.policy_id), version)


def note_waiting(version: AdapterVersion, why: str) -> None:
    """Say on a version that is only created what becomes of it, and what that waits for."""
    left_behind = why_left_behind(version)
    said = f"{left_behind}; its checks wait: {why}" if left_behind else f"waits: {why}"
    # not again each time: it is tried every few seconds
    created = AdapterVersion.objects.filter(pk=version.pk, state=VersionState.CREATED)
    created.exclude(reason=said[:500]).update(reason=said[:500])


def _decided(version: AdapterVersion) -> Published:
    if version.state == VersionState.READY:
        live = Policy.objects.filter(pk=version.policy_id, live=version).exists()
        return Published(version.pk, version.policy_id, "live" if live else "ready", version.reason)
    return Published(version.pk, version.policy_id, "refused", version.reason)


def _make_ready(
    version: AdapterVersion, placed: list[Placed], not_chosen: str, *, broke: str = ""
) -> Published:
    """Decide, in one transaction. `broke`: what kept the version from being chosen, and will again."""
    with transaction.atomic():
        policy = Policy.objects.select_for_update(of=("self",), no_key=True).get(pk=version.policy_id)
        version = AdapterVersion.objects.select_for_update(of=("self",)).get(pk=version.pk)
        if version.state != VersionState.CREATED:
            return _decided(version)
        _gate(version, "probe", passed=True, detail=_answers(placed))
        why_not = _superseded(policy, version) or not_chosen
        if broke:
            _say_broken(version, broke)
        version.state, version.reason = VersionState.READY, why_not[:500]
        version.ready_at = timezone.now()
        version.save(update_fields=["state", "reason", "ready_at"])
        if why_not:
            registry.unwant(served_names=[version.served_name])
        else:
            point(
                policy=policy,
                version=version,
                actor=ACTOR,
                reason=f"version {version.number} passed its checks",
            )
    logger.info("%s is %s", version.served_name, why_not or "live")
    return Published(version.pk, policy.pk, "ready" if why_not else "live", version.reason)


def _say_broken(version: AdapterVersion, broke: str) -> None:
    _gate(version, HELD_OUT, passed=False, detail={"reason": broke})
    alerts.alert(
        tenant_id=version.tenant_id,
        event=Event.VERSION_REFUSED,
        severity=Severity.WARNING,
        words=f"Version {version.number} of {version.policy.name} could not be chosen: {broke}",
        done="The version before it goes on answering. This one is ready, and can be made live by hand.",
        policy_id=version.policy_id,
        run_id=version.run_id,
        version_id=version.pk,
        data={"policy": version.policy.name, "number": version.number, "check": HELD_OUT},
        dedupe_key=f"refused:{version.pk}",
    )


def _superseded(policy: Policy, version: AdapterVersion) -> str:
    """Return why the pointer must not move to a version, or "".

    It moves only forward along the lineage: the version descends from what is live, and nothing between the
    two has been live before. If something has, somebody moved the pointer back from it, and that stands.
    """
    live = policy.live_id
    between: list[uuid.UUID] = []
    parents = dict(AdapterVersion.objects.filter(policy=policy).values_list("pk", "parent_id"))
    at = version.parent_id
    while at is not None and at != live:
        between.append(at)
        at = parents[at]
    if at != live:
        return "not live: the policy is on another branch by now"
    if PointerMove.objects.filter(policy=policy, to_version__in=between).exists():
        return "not live: the policy was rolled back meanwhile"
    return ""


def _refuse(version: AdapterVersion, check: str, reason: str, detail: dict[str, Any]) -> Published:
    with transaction.atomic():
        version = AdapterVersion.objects.select_for_update(of=("self",)).get(pk=version.pk)
        if version.state != VersionState.CREATED:
            return _decided(version)
        withhold(version, check=check, reason=reason, detail=detail, actor=ACTOR)
    logger.error("%s is refused by %s: %s", version.served_name, check, reason)
    return Published(version.pk, version.policy_id, "refused", version.reason)


def withhold(
    version: AdapterVersion, *, check: str, reason: str, actor: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Refuse a created version, in the caller's transaction with its row locked or just
    made: it is never served."""
    _gate(version, check, passed=False, detail={**(detail or {}), "reason": reason})
    version.state, version.reason = VersionState.REFUSED, f"{check}: {reason}"[:500]
    version.save(update_fields=["state", "reason"])
    registry.unwant(served_names=[version.served_name])
    audit.record(
        actor=actor,
        action="version.refuse",
        target=f"version:{version.pk}",
        tenant_id=version.tenant_id,
        detail={"number": version.number, "reason": version.reason},
    )
    alerts.alert(
        tenant_id=version.tenant_id,
        event=Event.VERSION_REFUSED,
        severity=Severity.WARNING,
        words=f"Version {version.number} of {version.policy.name} did not pass its checks: {version.reason}",
        done="The version before it goes on answering.",
        policy_id=version.policy_id,
        run_id=version.run_id,
        version_id=version.pk,
        data={"policy": version.policy.name, "number": version.number, "check": check},
        dedupe_key=f"refused:{version.pk}",
    )


def _gate(version: AdapterVersion, check: str, *, passed: bool, detail: dict[str, Any]) -> None:
    GateResult.objects.update_or_create(
        version=version,
        check_name=check,
        defaults={"tenant_id": version.tenant_id, "passed": passed, "detail": detail},
    )


def _answers(placed: list[Placed]) -> dict[str, Any]:
    return {
        "engines": [
            {"url": one.url, "result": one.result.value, "reason": one.reason, "probe": dict(one.probe)}
            for one in placed
        ]
    }
