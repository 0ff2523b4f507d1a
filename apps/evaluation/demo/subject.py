"""The demo's own policy and keys: what it teaches never touches the policies that people use."""

import datetime as dt
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.core.management import call_command

from apps.accounts.models import Tenant
from apps.adapters.models import Policy
from apps.adapters.services import create_policy
from apps.evaluation.demo.ledger import Subject
from apps.evaluation.operating import give_key, owner_of, set_training
from apps.evaluation.patience import patiently
from apps.evaluation.personalization.account import account_of
from apps.keys.models import KeyScope
from apps.keys.services import revoke_key
from apps.memory.services import set_setting
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

ACTOR = "system:demo"
_NAME = re.compile(r"^demo-(\d+)$")
_KEY_LIVES = dt.timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the demo works with. `user_key` may chat, `examiner_key` may also name versions."""

    subject: Subject
    tenant: Tenant
    policy: str
    user_key: str
    examiner_key: str


@contextmanager
def prepared(*, tenant_slug: str, api_key: str, resume: bool, remembers: bool = False) -> Iterator[Prepared]:
    """Make (or, to resume, find) the demo's policy and two keys of the person that `api_key` belongs to.

    A new policy `remembers` what it is told, and is taught it while nobody talks, or it learns from
    complaints alone. The keys are revoked afterwards. Raises `NotFound` where there is nothing to resume.
    """
    tenant, user = owner_of(tenant_slug=tenant_slug, api_key=api_key)
    with tenant_scope(tenant.pk):
        policy = _latest(tenant.pk) if resume else _fresh(tenant, remembers=remembers)
        set_training(policy, enabled=True, actor=ACTOR)
    keys = [
        give_key(tenant=tenant, user=user, name=name, scopes=scopes, lives=_KEY_LIVES, actor=ACTOR)
        for name, scopes in (
            ("demo user", [KeyScope.CHAT]),
            ("demo examiner", [KeyScope.CHAT, KeyScope.EVALUATE]),
        )
    ]
    try:
        yield Prepared(
            subject=Subject(tenant.pk, policy.pk),
            tenant=tenant,
            policy=policy.name,
            user_key=keys[0][1],
            examiner_key=keys[1][1],
        )
    finally:
        for key, _ in keys:
            patiently(partial(revoke_key, tenant_id=tenant.pk, key_id=key.pk, actor=ACTOR))


def go_back(*, tenant: str, policy: str, version: int) -> None:
    """Move the live pointer the way an operator does: with the command."""
    call_command("rollback", policy, str(version), tenant=tenant)


def pause_training(subject: Subject) -> None:
    """Stop training on the policy, so that samples left over do not move it after the choice."""
    with tenant_scope(subject.tenant_id):
        set_training(Policy.objects.get(pk=subject.policy_id), enabled=False, actor=ACTOR)


def _numbered() -> dict[int, Policy]:
    found = {}
    for policy in Policy.objects.filter(name__startswith="demo-"):
        if match := _NAME.match(policy.name):
            found[int(match.group(1))] = policy
    return found


def rest(subject: Subject) -> None:
    """Stop training and shadow rollouts: what is live stays."""
    with tenant_scope(subject.tenant_id):
        policy = Policy.objects.get(pk=subject.policy_id)
        set_training(policy, enabled=False, actor=ACTOR)
        set_setting(policy=policy, actor=ACTOR, shadow=False)


def account(subject: Subject) -> dict[str, Any]:
    """Return what was done for the policy in the background."""
    with tenant_scope(subject.tenant_id):
        return account_of(Policy.objects.get(pk=subject.policy_id))


def _fresh(tenant: Tenant, *, remembers: bool) -> Policy:
    policy = create_policy(tenant=tenant, name=f"demo-{max(_numbered(), default=0) + 1}", actor=ACTOR)
    set_setting(policy=policy, actor=ACTOR, in_prompt=remembers, shadow=remembers)
    return policy


def _latest(tenant_id: uuid.UUID) -> Policy:
    known = _numbered()
    if not known:
        raise NotFound(f"no demo to resume in tenant {tenant_id}: leave out --resume")
    return known[max(known)]
