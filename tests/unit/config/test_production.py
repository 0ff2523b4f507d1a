"""What a deployment says by its environment, and what it gets where it says nothing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ASKED = (
    *("EMAIL_HOST", "EMAIL_PORT", "EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD", "EMAIL_USE_TLS", "EMAIL_USE_SSL"),
    *("DEFAULT_FROM_EMAIL", "ACCOUNT_EMAIL_VERIFICATION", "SIGNUP_OPEN", "OPERATOR_CONTACT"),
    *("WEBHOOK_ALLOWED_NETWORKS", "EMAIL_BACKEND"),
)
BY_DEFAULT = {
    "EMAIL_HOST": "localhost",
    "EMAIL_PORT": 25,
    "EMAIL_HOST_USER": "",
    "EMAIL_HOST_PASSWORD": "",
    "EMAIL_USE_TLS": False,
    "EMAIL_USE_SSL": False,
    "DEFAULT_FROM_EMAIL": "Attune <attune@localhost>",
    "ACCOUNT_EMAIL_VERIFICATION": "mandatory",
    "SIGNUP_OPEN": True,
    "OPERATOR_CONTACT": "",
    "WEBHOOK_ALLOWED_NETWORKS": [],
    "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
}


def passed_on() -> list[str]:
    """Return the variables that the composed processes take from their surroundings,
    empty where they are not set."""
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    return re.findall(r"^  ([A-Z_]+): \$\{\1:-\}$", text, re.MULTILINE)


def asked(**given: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
    program = (
        f"import json, config.settings.{given.pop('situation', 'production')} as s;"
        f"print(json.dumps({{name: getattr(s, name, None) for name in {ASKED!r}}}))"
    )
    env = kept | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "SECRET_KEY": "x", **given}
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )


def test_what_is_not_said_and_what_is_empty_are_the_same() -> None:
    """The composed processes are given every variable, empty where nobody set it."""
    assert json.loads(asked().stdout) == BY_DEFAULT
    empty = dict.fromkeys(passed_on(), "")
    assert {"EMAIL_HOST", "EMAIL_PORT", "EMAIL_USE_TLS", "SIGNUP_OPEN", "MAIL_FROM"} <= set(empty)
    assert json.loads(asked(**empty).stdout) == BY_DEFAULT


def test_a_mail_server_is_said_by_variables() -> None:
    found = json.loads(
        asked(
            EMAIL_HOST="smtp.example.org",
            EMAIL_HOST_USER="ada",
            EMAIL_HOST_PASSWORD="secret",
            EMAIL_USE_TLS="true",
            MAIL_FROM="Attune <attune@example.org>",
            SIGNUP_CONFIRMED="false",
            SIGNUP_OPEN="false",
            OPERATOR_CONTACT="ops@example.org",
            WEBHOOK_ALLOWED_NETWORKS="10.0.0.0/8,fd00::/8",
        ).stdout
    )
    assert found == BY_DEFAULT | {
        "EMAIL_HOST": "smtp.example.org",
        "EMAIL_PORT": 587,
        "EMAIL_HOST_USER": "ada",
        "EMAIL_HOST_PASSWORD": "secret",
        "EMAIL_USE_TLS": True,
        "DEFAULT_FROM_EMAIL": "Attune <attune@example.org>",
        "ACCOUNT_EMAIL_VERIFICATION": "optional",
        "SIGNUP_OPEN": False,
        "OPERATOR_CONTACT": "ops@example.org",
        "WEBHOOK_ALLOWED_NETWORKS": ["10.0.0.0/8", "fd00::/8"],
    }


@pytest.mark.parametrize(
    ("given", "port"), [({"EMAIL_USE_SSL": "1"}, 465), ({"EMAIL_USE_SSL": "1", "EMAIL_PORT": "2465"}, 2465)]
)
def test_the_port_follows_the_encryption_unless_it_is_said(given: dict[str, str], port: int) -> None:
    assert json.loads(asked(**given).stdout)["EMAIL_PORT"] == port


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"EMAIL_USE_SSL": "1", "EMAIL_USE_TLS": "1"},
            "Set one of EMAIL_USE_TLS (STARTTLS) and EMAIL_USE_SSL",
        ),
        ({"EMAIL_PORT": "smtp"}, "EMAIL_PORT='smtp' is not a whole number."),
    ],
)
def test_what_cannot_be_is_named(given: dict[str, str], said: str) -> None:
    ended = asked(**given)
    assert ended.returncode == 1
    assert said in ended.stderr


def test_the_embedded_default_waits_for_no_confirmation() -> None:
    found = json.loads(asked(situation="local", ATTUNE_HOME="/nowhere").stdout)
    assert found["ACCOUNT_EMAIL_VERIFICATION"] == "optional"


def test_every_variable_of_a_deployment_stands_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    spoken_for = {
        "GITHUB_CLIENT_ID",
        "GITHUB_CLIENT_SECRET",
        "CSRF_TRUSTED_ORIGINS",
    }  # `GITHUB_…`; TLS proxies
    assert [name for name in passed_on() if name not in spoken_for and f"`{name}" not in readme] == []
