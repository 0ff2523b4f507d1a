"""Where the runs take place: for each a tenant of its own on a running platform,
made and put to rest as an operator would."""

import asyncio
import datetime as dt
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from apps.accounts.models import Membership, Role, Tenant, User
from apps.accounts.services import create_tenant, set_role
from apps.adapters.models import AdapterVersion, Policy, VersionState
from apps.adapters.services import create_policy
from apps.evaluation.chat import Chat, RequestLog
from apps.evaluation.operating import give_key, owner_of, set_config, set_training
from apps.evaluation.patience import patiently
from apps.evaluation.personalization.account import account_of
from apps.evaluation.personalization.methods import Method
from apps.evaluation.personalization.run import Subject
from apps.evaluation.personalization.switches import set_switches
from apps.keys.models import KeyScope
from apps.keys.services import revoke_key
from apps.learning.models import OPEN_RUN_STATES, TrainingRun
from kernel.errors import Unavailable
from kernel.tenancy import system_scope, tenant_scope

ACTOR = "system:benchmark"
POLICY = "default"
SETTLES_S = 600.0
"""A step and the choice of its version take a minute or two."""
LOOK_EVERY_S = 2.0
_KEY_LIVES = dt.timedelta(days=2)


@dataclass(frozen=True, slots=True)
class _Made:
    """The rows behind a subject."""

    tenant: Tenant
    policy_id: uuid.UUID
    key_ids: tuple[uuid.UUID, ...]
    user_key: str
    examiner_key: str


class Stage:
    """A running platform, reached at its API's address. `api_key` says whose person talks."""

    def __init__(self, *, api_base: str, tenant: str, api_key: str) -> None:
        self._api_base = api_base
        self._tenant = tenant
        self._api_key = api_key

    async def open(self, *, method: Method, tenant: str) -> Subject | None:
        """Make a tenant with a policy configured as the method says,
        or find it again; None where it is gone."""
        made = await sync_to_async(patiently)(partial(self._made, method, tenant))
        if made is None:
            return None
        # one log each: talk and measurement are counted apart
        return Subject(
            tenant=made.tenant.slug,
            policy=POLICY,
            user=Chat(base_url=self._api_base, api_key=made.user_key, log=RequestLog()),
            examiner=Chat(base_url=self._api_base, api_key=made.examiner_key, log=RequestLog()),
            handle=replace(made, user_key="", examiner_key=""),
        )

    async def rest(self, subject: Subject) -> None:
        """Switch training and shadow rollouts off, and wait for the step and the version that are under way.

        Raises Unavailable where one of them comes to no end: the same command goes on later.
        """
        made, began = _made_of(subject), time.monotonic()
        await sync_to_async(patiently)(partial(_rested, made))
        while what := await sync_to_async(patiently)(partial(_under_way, made)):
            if time.monotonic() - began > SETTLES_S:
                raise Unavailable(
                    f"{what} of {subject.tenant} came to no end in {SETTLES_S:.0f} s: look at its engine and its trainer; the same command goes on"
                )
            await asyncio.sleep(LOOK_EVERY_S)

    async def account(self, subject: Subject) -> Mapping[str, Any]:
        """Return what was done for the policy in the background."""
        return await sync_to_async(patiently)(partial(_accounted, _made_of(subject)))

    async def close(self, subject: Subject) -> None:
        """Revoke the two keys and close their connections."""
        await subject.user.close()
        await subject.examiner.close()
        await sync_to_async(patiently)(partial(_revoked, _made_of(subject)))

    def _made(self, method: Method, slug: str) -> _Made | None:
        _, person = owner_of(tenant_slug=self._tenant, api_key=self._api_key)
        tenant = _found(slug, person) if slug else _fresh(method, person)
        if tenant is None:
            return None
        with tenant_scope(tenant.pk):
            policy = Policy.objects.get(name=POLICY)
            set_config(policy, method.config, actor=ACTOR)
            set_training(policy, enabled=method.trains, actor=ACTOR)
            set_switches(policy, memory=method.memory, shadow=method.shadow, actor=ACTOR)
        keys = [
            give_key(tenant=tenant, user=person, name=name, scopes=scopes, lives=_KEY_LIVES, actor=ACTOR)
            for name, scopes in (
                ("benchmark user", [KeyScope.CHAT]),
                ("benchmark examiner", [KeyScope.CHAT, KeyScope.EVALUATE]),
            )
        ]
        return _Made(tenant, policy.pk, tuple(key.pk for key, _ in keys), keys[0][1], keys[1][1])


def _fresh(method: Method, person: User) -> Tenant:
    slug = f"benchmark-{method.name}-{uuid.uuid4().hex[:8]}"
    with system_scope("a benchmark makes a tenant for one run"):
        tenant = create_tenant(slug=slug, name=f"Benchmark: {method.name}", actor=ACTOR)
    set_role(tenant_id=tenant.pk, user=person, role=Role.MEMBER, actor=ACTOR)
    with tenant_scope(tenant.pk):
        create_policy(tenant=tenant, name=POLICY, actor=ACTOR)
    return tenant


def _found(slug: str, person: User) -> Tenant | None:
    with system_scope("a benchmark goes on with a run's tenant"):
        tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        return None
    with tenant_scope(tenant.pk):
        whole = (
            Membership.objects.filter(user=person).exists() and Policy.objects.filter(name=POLICY).exists()
        )
    return tenant if whole else None


def _rested(made: _Made) -> None:
    with tenant_scope(made.tenant.pk):
        policy = Policy.objects.get(pk=made.policy_id)
        set_training(policy, enabled=False, actor=ACTOR)
        set_switches(policy, memory=None, shadow=False, actor=ACTOR)


def _under_way(made: _Made) -> str:
    """Return what may still change what is live, "" for nothing."""
    with tenant_scope(made.tenant.pk):
        if TrainingRun.objects.filter(policy_id=made.policy_id, state__in=OPEN_RUN_STATES).exists():
            return "a training run"
        waiting = AdapterVersion.objects.filter(policy_id=made.policy_id, state=VersionState.CREATED).first()
        return f"version {waiting.number}" if waiting is not None else ""


def _accounted(made: _Made) -> dict[str, Any]:
    with tenant_scope(made.tenant.pk):
        return account_of(Policy.objects.get(pk=made.policy_id))


def _revoked(made: _Made) -> None:
    for key_id in made.key_ids:
        revoke_key(tenant_id=made.tenant.pk, key_id=key_id, actor=ACTOR)


def _made_of(subject: Subject) -> _Made:
    assert isinstance(subject.handle, _Made)  # noqa: S101
    return subject.handle
