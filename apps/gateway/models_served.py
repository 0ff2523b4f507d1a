"""Which policy and version a request's `model` names."""

import re
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from apps.adapters.models import AdapterVersion, Policy
from apps.conversations.models import TurnKind
from apps.keys.models import KeyScope
from apps.keys.services import Caller
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

_NAMED = re.compile(r"([a-z][a-z0-9._-]{0,59})(?:@(\d{1,9}))?")
BASE = "base"
"""What the hash header says of version 0, which has no files."""


@dataclass(frozen=True, slots=True)
class Target:
    """A policy and the version pinned for one request; None is version 0, the bare base."""

    policy: Policy
    version: AdapterVersion | None
    kind: TurnKind

    @property
    def number(self) -> int:
        """The version's number."""
        return self.version.number if self.version else 0

    @property
    def sha256(self) -> str:
        """The hash of the version's files."""
        return self.version.sha256 if self.version else BASE

    @property
    def served_name(self) -> str:
        """The name under which the engine knows it."""
        return self.version.served_name if self.version else settings.BASE_MODEL_NAME


def resolve_model(*, caller: Caller, model: str) -> Target:
    """Return what `model` names for this caller: `policy` (its live version) or `policy@number`.

    A number needs the `evaluate` scope and makes an evaluation turn, which is never trained on. Raises
    NotFound (`model_not_found`) for what is not there, or not this tenant's. Needs the tenant's scope.
    """
    named = _NAMED.fullmatch(model)
    policy = Policy.objects.select_related("live").filter(name=named[1]).first() if named else None
    if named is None or policy is None:
        raise _no_model(model)
    if named[2] is None:
        return Target(policy, policy.live, TurnKind.LIVE)
    caller.require(KeyScope.EVALUATE)
    number = int(named[2])
    if number == 0:
        return Target(policy, None, TurnKind.EVALUATION)
    version = AdapterVersion.objects.filter(policy=policy, number=number).first()
    if version is None:
        raise _no_model(model)
    return Target(policy, version, TurnKind.EVALUATION)


def list_models(*, caller: Caller) -> list[dict[str, Any]]:
    """Return the tenant's policies as OpenAI's model objects, with the live version of each."""
    with tenant_scope(caller.tenant_id):
        policies = Policy.objects.select_related("live").order_by("name")
        return [_model(policy) for policy in policies]


def _model(policy: Policy) -> dict[str, Any]:
    return {
        "id": policy.name,
        "object": "model",
        "created": int(policy.created_at.timestamp()),
        "owned_by": "attune",
        "base_model": policy.base_model,
        "version": policy.live.number if policy.live else 0,
        "version_hash": policy.live.sha256 if policy.live else BASE,
    }


def _no_model(model: str) -> NotFound:
    shown = model.encode("ascii", "replace").decode()[:100]
    return NotFound(f"The model `{shown}` does not exist.", field="model", code="model_not_found")
