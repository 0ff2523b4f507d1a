"""Make what a new installation needs before anybody can log in or send a request."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

from apps.accounts.models import Membership, Role, Tenant, User
from apps.accounts.services import create_tenant, create_user, new_password, set_password, set_role
from apps.adapters.models import Policy
from apps.adapters.services import create_policy
from apps.keys.models import ApiKey, KeyScope
from apps.keys.services import create_key
from kernel.tenancy import system_scope, tenant_scope

ACTOR = "system:first_run"
KEY_NAME = "first run"
KEY_SCOPES = (KeyScope.CHAT, KeyScope.READ, KeyScope.MANAGE, KeyScope.EVALUATE)
_LOCK = 7_021_990  # advisory: two first runs at once would both find nothing there


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What a person needs to begin. A secret is None where it was made earlier: only its hash is kept."""

    web_url: str
    api_base: str
    api_key: str | None
    operator_email: str
    operator_password: str | None
    tenant: str

    def as_json(self) -> dict[str, str | None]:
        """Return the fields by name."""
        return asdict(self)


def first_run(
    *, operator_email: str, tenant_slug: str, new_key: bool, new_operator_password: bool
) -> FirstRun:
    """Make the operator, the tenant, its policy `default` and a key: whatever of them is missing.

    One transaction. Repeating it changes nothing unless another key or password is asked for; a
    new key does not revoke the older one.
    """
    with system_scope("first run"), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        operator, password = _operator(operator_email.strip().lower(), new_operator_password)
        tenant = Tenant.objects.filter(slug=tenant_slug).first() or create_tenant(
            slug=tenant_slug, name=tenant_slug.capitalize(), actor=ACTOR
        )
        with tenant_scope(tenant.pk):
            if not Membership.objects.filter(user=operator).exists():
                set_role(tenant_id=tenant.pk, user=operator, role=Role.OWNER, actor=ACTOR)
            if not Policy.objects.filter(name="default").exists():
                create_policy(tenant=tenant, name="default", base_model=settings.BASE_MODEL_NAME)
            secret = None
            if new_key or not ApiKey.objects.filter(name=KEY_NAME, revoked_at=None).exists():
                _, secret = create_key(tenant=tenant, user=operator, name=KEY_NAME, scopes=list(KEY_SCOPES))
    return FirstRun(
        web_url=settings.WEB_URL,
        api_base=settings.API_BASE,
        api_key=secret,
        operator_email=operator.email,
        operator_password=password,
        tenant=tenant.slug,
    )


def kept_in(file: Path, made: FirstRun) -> dict[str, str]:
    """Return what an earlier run kept in a file; nothing where that speaks of another tenant or operator."""
    try:
        kept: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    same = (kept.get("tenant"), kept.get("operator_email")) == (made.tenant, made.operator_email)
    return kept if same else {}


def keep(made: FirstRun, file: Path) -> None:
    """Put new secrets into the file that an earlier run's stand in,
    where it speaks of the same tenant and operator.

    The file is replaced whole, readable by its owner only.
    """
    kept = kept_in(file, made)
    if not kept:
        return
    secrets = {"api_key": made.api_key, "operator_password": made.operator_password}
    updated = kept | {name: value for name, value in secrets.items() if value}
    if updated == kept:
        return
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(json.dumps(updated, indent=2) + "\n")
    aside.replace(file)


def _operator(email: str, another_password: bool) -> tuple[User, str | None]:  # noqa: FBT001
    password = new_password()
    operator = User.objects.filter(email=email).first()
    if operator is None:
        return create_user(email=email, password=password, operator=True, actor=ACTOR), password
    if not another_password:
        return operator, None
    set_password(user=operator, password=password, actor=ACTOR)
    return operator, password
