"""The playground: a version of a policy, alone or beside another one."""

from typing import Any

import orjson
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST, require_safe

from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.dashboard.lists import chosen_word
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.playground.passes import pass_of
from apps.dashboard.playground.relay import relay
from kernel.rest.caller import Access

VERSIONS = 200  # that may be chosen, the newest of all policies
LIVE = "live"
# what a browser may say beside the model; the gateway checks it as it checks everybody's
_FORWARDED = ("messages", "temperature", "max_tokens", "session_id")


@require_safe
@tenant_page(needs=Access.TALK)
def playground(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the page; it asks nothing until somebody sends a message."""
    policies = list(Policy.objects.select_related("live").order_by("name"))
    versions: dict[Any, list[int]] = {policy.pk: [] for policy in policies}
    ready = AdapterVersion.objects.filter(state=VersionState.READY).order_by("-created_at")
    for policy_id, number in ready.values_list("policy_id", "number")[:VERSIONS]:
        versions[policy_id].append(number)
    wanted = request.GET.get("version", "")
    if wanted and not (wanted.isascii() and wanted.isdigit() and len(wanted) <= 9):
        raise Http404
    chosen = chosen_word(request, "policy", [policy.name for policy in policies])
    return place.show(
        request,
        "playground",
        section="playground",
        policies=policies,
        chosen=chosen or (policies[0].name if policies else ""),
        choices={
            "api_base": settings.API_BASE,
            "beside": wanted,
            "policies": {
                policy.name: {
                    "live": policy.live.number if policy.live else 0,
                    "temperature": policy.temperature,
                    "versions": sorted(versions[policy.pk], reverse=True),
                }
                for policy in policies
            },
        },
    )


@require_POST
@tenant_page(needs=Access.TALK)
def ask(request: HttpRequest, place: Place) -> HttpResponseBase:
    """Stream the reply of one version: asked by number and as a side turn,
    so that it is stored and never trained on."""
    try:
        asked = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return _wrong("The body is not JSON.")
    if not isinstance(asked, dict):
        return _wrong("The body is not an object.")
    name, version = asked.get("policy"), asked.get("version")
    if not isinstance(name, str) or "\x00" in name:  # Postgres takes none to look for
        raise Http404
    policy = Policy.objects.select_related("live").filter(name=name).first()
    if policy is None:
        raise Http404
    if version == LIVE:
        version = policy.live.number if policy.live else 0
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 10**9:
        return _wrong("`version` must be `live` or a number.")
    body = {one: asked[one] for one in _FORWARDED if asked.get(one) is not None}
    body |= {"model": f"{policy.name}@{version}", "stream": True, "stream_options": {"include_usage": True}}
    response = StreamingHttpResponse(
        relay(
            key=pass_of(request.session, place),
            body=body,
            headers={"X-Turn-Type": "side", "X-Memory": "off" if asked.get("memory") is False else "on"},
        ),
        content_type="text/event-stream",
    )
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _wrong(message: str) -> JsonResponse:
    return JsonResponse({"error": {"message": message}}, status=400)
