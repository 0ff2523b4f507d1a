"""Second factors at rest: the database never holds what makes a code."""

import importlib
import json

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.core.cache import cache
from django.db import connection
from django.test import Client

from apps.accounts.mfa_forms import UNREADABLE
from apps.accounts.models import User
from kernel.sealing import Unreadable
from kernel.tenancy import system_scope

SECRET = "JBSWY3DPEHPK3PXP"
sealing = importlib.import_module("migrations.accounts.0003_seal_second_factors")


@pytest.fixture
def eve(db: None, valkey: object) -> User:
    del db, valkey
    cache.clear()
    with system_scope("tests"):
        return User.objects.create_user("eve@example.org", "a password of some length")


def code_of(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))


def stored() -> str:
    """Return what the table holds, as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT data::text FROM mfa_authenticator ORDER BY id")
        return "\n".join(row[0] for row in cursor.fetchall())


def test_a_row_holds_no_plain_secret_and_its_code_is_taken(eve: User) -> None:
    totp = TOTP.activate(eve, SECRET)
    assert SECRET not in stored()
    assert json.loads(stored())["secret"].startswith("sealed:")
    assert not TOTP(Authenticator.objects.get(pk=totp.instance.pk)).validate_code("000000")
    assert TOTP(Authenticator.objects.get(pk=totp.instance.pk)).validate_code(code_of(SECRET))


def test_recovery_codes_come_from_a_sealed_seed(eve: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecoveryCodes, "generate_seed", lambda: "ab" * 40)
    codes = RecoveryCodes.activate(eve).generate_codes()
    assert "ab" * 40 not in stored()
    kept = RecoveryCodes(Authenticator.objects.get(user=eve))
    assert kept.generate_codes() == codes
    assert kept.validate_code(codes[0])
    assert not kept.validate_code(codes[0])


def test_a_row_from_before_still_works_and_is_sealed_by_the_migration(eve: User) -> None:
    Authenticator.objects.create(user=eve, type=Authenticator.Type.TOTP, data={"secret": SECRET})
    Authenticator.objects.create(
        user=eve,
        type=Authenticator.Type.RECOVERY_CODES,
        data={"migrated_codes": ["12345678"], "seed": "cd" * 40, "used_mask": 3},
    )
    row = Authenticator.objects.get(type=Authenticator.Type.TOTP)
    assert TOTP(row).validate_code(code_of(SECRET))
    for _ in range(2):  # the second time finds nothing to do
        with connection.schema_editor() as editor:
            sealing.seal_secrets(None, editor)
        held = stored()
        assert all(word not in held for word in (SECRET, "12345678", "cd" * 40))
        cache.clear()  # a code is good for once
        row.refresh_from_db()
        assert TOTP(row).validate_code(code_of(SECRET))
    codes = RecoveryCodes(Authenticator.objects.get(type=Authenticator.Type.RECOVERY_CODES))
    assert codes.generate_codes() == ["12345678"]
    assert codes.instance.data["used_mask"] == 3


def test_under_another_key_nobody_gets_in(eve: User, settings: pytest.FixtureRequest) -> None:
    totp = TOTP.activate(eve, SECRET)
    before = settings.SECRET_KEY
    settings.SECRET_KEY = "another"
    with pytest.raises(Unreadable):
        totp.validate_code(code_of(SECRET))
    settings.SECRET_KEY_FALLBACKS = [before]
    assert totp.validate_code(code_of(SECRET))


def test_a_sign_in_under_another_key_says_what_to_do(eve: User, settings: pytest.FixtureRequest) -> None:
    TOTP.activate(eve, SECRET)
    settings.SECRET_KEY = "another"
    client = Client()
    asked = client.post(
        "/accounts/login/", {"login": "eve@example.org", "password": "a password of some length"}, follow=True
    )
    assert asked.redirect_chain[-1][0].startswith("/accounts/2fa/authenticate/")
    page = client.post("/accounts/2fa/authenticate/", {"code": code_of(SECRET)})
    assert page.status_code == 200
    assert UNREADABLE in page.content.decode()
    assert "_auth_user_id" not in client.session


def test_pages_that_need_a_secret_sealed_under_another_key_say_so(
    eve: User, settings: pytest.FixtureRequest
) -> None:
    RecoveryCodes.activate(eve)
    settings.SECRET_KEY = "another"
    client = Client()
    client.force_login(eve, "django.contrib.auth.backends.ModelBackend")
    page = client.get("/accounts/2fa/")
    assert page.status_code == 503
    assert "SECRET_KEY_FALLBACKS" in page.content.decode()
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_code_asked_for_once_more_under_another_key_says_what_to_do(
    eve: User, settings: pytest.FixtureRequest
) -> None:
    TOTP.activate(eve, SECRET)
    settings.SECRET_KEY = "another"
    client = Client()
    client.force_login(eve, "django.contrib.auth.backends.ModelBackend")
    page = client.post("/accounts/2fa/reauthenticate/", {"code": code_of(SECRET)})
    assert page.status_code == 200
    assert UNREADABLE in page.content.decode()
