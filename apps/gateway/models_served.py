"""Which policy and version a request's `model` names."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

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
class ModelName:
    """What a request's `model` says: a policy, and a version where it wants one that may not be live."""

    text: str
    policy: str | None
    number: int | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what `text` names; `policy` is None where it can name none."""
        named = _NAMED.fullmatch(text)
        if named is None:
            return cls(text, None, None)
        return cls(text, named[1], int(named[2]) if named[2] is not None else None)

    @property
    def kind(self) -> TurnKind:
        """A version asked for by number makes an evaluation turn, which is never trained on."""
        return TurnKind.LIVE if self.number is None else TurnKind.EVALUATION


@dataclass(frozen=True, slots=True)
class Target:
    """A policy and the version pinned for one request; `version_id` None is version 0, the bare base."""

    policy_id: uuid.UUID
    temperature: float
    version_id: uuid.UUID | None = None
    number: int = 0
    sha256: str = BASE
    adapter: str | None = None
    """The version's immutable served name."""

    @property
    def served_name(self) -> str:
        """The name under which the engine knows it."""
        return self.adapter or settings.BASE_MODEL_NAME

    def at(self, version: AdapterVersion | None) -> "Target":
        """Return the same policy at another version."""
        if version is None:
            return Target(self.policy_id, self.temperature)
        return Target(
            self.policy_id,
            self.temperature,
            version.id,
            version.number,
            version.sha256,
            version.served_name,
        )


def resolve_model(*, caller: Caller, model: ModelName, found: Mapping[str, Any]) -> Target:
    """Return what `model` names for this caller, given what `attune_look_up` found.

    A number needs the `evaluate` scope. Raises NotFound (`model_not_found`) for what is not there, not
    this tenant's, or none of the policies that the key is limited to: the look-up finds no other.
    """
    policy, version = found["policy"], found["version"]
    if policy is None:
        raise no_model(_missing(model))
    if model.number is not None:
        caller.require(KeyScope.EVALUATE)
        if version is None and model.number != 0:
            raise NotFound(_missing(model), field="model", code="model_not_found")
    policy_id, temperature = uuid.UUID(policy["id"]), float(policy["temperature"])
    if version is None:
        return Target(policy_id, temperature)
    return Target(
        policy_id,
        temperature,
        uuid.UUID(version["id"]),
        version["number"],
        version["sha256"],
        version["served_name"],
    )


def list_models(*, caller: Caller) -> list[dict[str, Any]]:
    """Return the policies that a caller may name as OpenAI's model objects, with the live version of each."""
    with tenant_scope(caller.tenant_id):
        policies = Policy.objects.select_related("live").order_by("name")
        return [_model(policy) for policy in policies if caller.may_name(policy.pk)]


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


def no_model(said: str = "The model does not exist.") -> NotFound:
    """Return the refusal of a name that is none of the caller's policies, with where those stand."""
    return NotFound(f"{said} `GET /v1/models` lists those that do.", field="model", code="model_not_found")


def _missing(model: ModelName) -> str:
    shown = model.text.encode("ascii", "replace").decode()[:100]
    return f"The model `{shown}` does not exist."
