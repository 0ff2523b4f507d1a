"""What changes policies and versions."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from apps.accounts.models import Tenant
from apps.adapters import placement, store
from apps.adapters.models import AdapterVersion, PointerMove, Policy, PolicyConfig, VersionState
from apps.adapters.selectors import next_number, version_of
from apps.alerts import services as alerts
from apps.alerts.models import Event, Severity
from apps.engines import registry
from kernel import audit, outbox
from kernel.errors import Conflict, InvalidInput, NotFound
from kernel.tenancy import system_scope, tenant_scope


def create_policy(
    *, tenant: Tenant, name: str, base_model: str = "", actor: str = "system:platform"
) -> Policy:
    """Create a policy of a tenant that answers from the bare base. Must run in the tenant's scope."""
    policy = Policy(tenant=tenant, name=name, base_model=base_model or settings.BASE_MODEL_NAME)
    try:
        policy.clean_fields(exclude=["live", "config"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidInput(f"{field}: {messages[0]}", field=field) from error
    try:
        with transaction.atomic():
            PolicyConfig.objects.create(
                tenant_id=tenant.pk, policy_id=policy.pk, number=policy.config_number, actor=actor
            )
            policy.save(force_insert=True)
            audit.record(
                actor=actor,
                action="policy.create",
                target=f"policy:{policy.pk}",
                tenant_id=tenant.pk,
                detail={"name": name, "base_model": policy.base_model},
            )
    except IntegrityError as error:
        raise Conflict(f"there is a policy named {name} already", field="name") from error
    return policy


def create_version(
    *,
    policy: Policy,
    parent: AdapterVersion | None,
    run_id: uuid.UUID,
    artefact_dir: str | Path,
    sha256: str,
    rank: int,
    alpha: int,
    metrics: Mapping[str, Any],
) -> AdapterVersion:
    """Make the row of a version whose files are whole on storage, in the caller's transaction.

    The caller holds the policy's row locked: the number is the next one. Raises StoreError where the files
    are not in the store or do not hash to `sha256`.
    """
    directory = Path(artefact_dir)
    relative = store.relative(directory)
    found = store.version_hash(directory)
    if found != sha256:
        raise store.StoreError(f"{relative} hashes to {found[:16]}…, expected {sha256[:16]}…")
    if parent is not None and parent.policy_id != policy.pk:
        raise Conflict("the parent is a version of another policy")
    number = next_number(policy)
    return AdapterVersion.objects.create(
        tenant_id=policy.tenant_id,
        policy=policy,
        number=number,
        parent=parent,
        depth=parent.depth + 1 if parent else 1,
        served_name=served_name(policy.pk, number, sha256),
        sha256=sha256,
        path=relative,
        rank=rank,
        alpha=alpha,
        run_id=run_id,
        metrics=dict(metrics),
    )


def served_name(policy_id: uuid.UUID, number: int, sha256: str) -> str:
    """Return the name that engines know a version by.

    Its parts never change, so it never means another one.
    """
    # the beginning of a UUID of version 7 is the time: policies made in the same minute would share it
    return f"p{policy_id.hex[-8:]}-v{number}-{sha256[:8]}"


@dataclass(frozen=True, slots=True)
class Moved:
    """A policy whose pointer was moved, and the number it named before; 0 is the bare base."""

    policy: Policy
    before: int


def move_pointer(*, policy_id: uuid.UUID, to_version_id: uuid.UUID | None, actor: str, reason: str) -> Moved:
    """Let a policy answer from another ready version, or from the bare base (None), from the next request on.

    First every ready engine must answer with it. Moving to where the pointer is does nothing. Raises
    NotFound, Conflict (not ready, or an engine refuses it) or EngineUnavailable; then nothing has moved.
    """
    policy = Policy.objects.filter(pk=policy_id).first()
    if policy is None:
        raise NotFound("there is no such policy")
    if to_version_id is not None:
        placement.bring_back(_ready_version(policy, to_version_id))
    with transaction.atomic():
        policy = Policy.objects.select_for_update(of=("self",), no_key=True).get(pk=policy_id)
        version = None if to_version_id is None else _ready_version(policy, to_version_id)
        before = policy.live.number if policy.live else 0
        if policy.live_id != to_version_id:
            point(policy=policy, version=version, actor=actor, reason=reason)
            # it may know less than the one before: what had left the prompt because that
            # one held it is told again
            outbox.enqueue(
                task="workers.publishing.look_what_is_held",
                queue="ops",
                tenant_id=policy.tenant_id,
                kwargs={"policy_id": str(policy.pk)},
            )
    return Moved(policy, before)


def point(*, policy: Policy, version: AdapterVersion | None, actor: str, reason: str) -> None:
    """Move the pointer of a policy whose row the caller has locked; the move and its audit row go with it."""
    before = policy.live
    # one statement says it all again, so that no caller's mistake can make anything else live
    allowed = Policy.objects.filter(pk=policy.pk, live=before)
    if version is not None:
        allowed = allowed.filter(versions__pk=version.pk, versions__state=VersionState.READY)
    if allowed.update(live=version) != 1:
        raise Conflict("only a ready version of the policy may become live")
    policy.live = version
    move = PointerMove.objects.create(
        tenant_id=policy.tenant_id,
        policy=policy,
        from_version=before,
        to_version=version,
        actor=actor,
        reason=reason[:500],
    )
    audit.record(
        actor=actor,
        action="policy.point",
        target=f"policy:{policy.pk}",
        tenant_id=policy.tenant_id,
        detail={
            "from": before.number if before else 0,
            "to": version.number if version else 0,
            "reason": reason[:500],
        },
    )
    alerts.alert(
        tenant_id=policy.tenant_id,
        event=Event.VERSION_LIVE,
        severity=Severity.INFO,
        words=(
            f"{policy.name} answers from {_named(version)} now, before from {_named(before)}: {reason[:500]}"
        ),
        policy_id=policy.pk,
        version_id=version.pk if version else None,
        data={
            "policy": policy.name,
            "from": before.number if before else 0,
            "to": version.number if version else 0,
        },
        dedupe_key=f"point:{move.pk}",
    )
    others = AdapterVersion.objects.filter(policy=policy, state=VersionState.READY)
    if version is not None:
        others = others.exclude(pk=version.pk)
    registry.unwant(served_names=others.values_list("served_name", flat=True))


def _named(version: AdapterVersion | None) -> str:
    return f"version {version.number}" if version else "the bare base"


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did; 0 is the bare base."""

    tenant: str
    policy: str
    before: int
    now: int


def rollback(
    *, tenant: str, policy: str, number: int, actor: str = "system:command line", reason: str = ""
) -> RolledBack:
    """Let a tenant's policy answer from one of its earlier (or later) versions; 0 is the bare base."""
    with system_scope("find the tenant by its slug"):
        found = Tenant.objects.filter(slug=tenant).first()
    if found is None:
        raise NotFound(f"there is no tenant {tenant}", field="tenant")
    with tenant_scope(found.pk):
        row = Policy.objects.filter(name=policy).first()
        if row is None:
            raise NotFound(f"{tenant} has no policy {policy}", field="policy")
        version = version_of(row, number)
        moved = move_pointer(
            policy_id=row.pk,
            to_version_id=version.pk if version else None,
            actor=actor,
            reason=reason or f"rolled back to version {number}",
        )
    return RolledBack(tenant, policy, moved.before, number)


def _ready_version(policy: Policy, version_id: uuid.UUID) -> AdapterVersion:
    version = AdapterVersion.objects.filter(policy=policy, pk=version_id).first()
    if version is None:
        raise NotFound(f"{policy.name} has no such version")
    if version.state != VersionState.READY:
        raise Conflict(f"version {version.number} of {policy.name} is {version.state}, not ready")
    return version


def change_policy(
    *,
    policy_id: uuid.UUID,
    actor: str,
    temperature: float | None = None,
    training_enabled: bool | None = None,
) -> Policy:
    """Change how a policy answers where the client names nothing, or whether it learns; None leaves as it is.

    Audited.
    """
    with transaction.atomic():
        policy = Policy.objects.select_for_update(of=("self",), no_key=True).filter(pk=policy_id).first()
        if policy is None:
            raise NotFound("there is no such policy")
        asked = {"temperature": temperature, "training_enabled": training_enabled}
        changed = {
            field: value
            for field, value in asked.items()
            if value is not None and value != getattr(policy, field)
        }
        if changed:
            for field, value in changed.items():
                setattr(policy, field, value)
            try:
                policy.clean_fields(exclude=["live", "config"])
            except ValidationError as error:
                field, messages = next(iter(error.message_dict.items()))
                raise InvalidInput(f"{field}: {messages[0]}", field=field) from error
            policy.save(update_fields=list(changed))
            audit.record(
                actor=actor,
                action="policy.change",
                target=f"policy:{policy.pk}",
                tenant_id=policy.tenant_id,
                detail=changed,
            )
    return policy
