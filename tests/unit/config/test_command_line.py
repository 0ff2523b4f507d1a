"""`manage.py` where what a command needs does not run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.core.management.base import CommandError
from django.db import OperationalError

from config import command_line
from embedded.home import free_port

MANAGE = Path(settings.BASE_DIR) / "manage.py"


@pytest.mark.parametrize(
    "command",
    [
        ["check_ledger"],
        ["first_run"],
        ["create_key", "--tenant", "acme", "--user", "ada@example.org", "--name", "x"],
        ["migrate", "--check"],
    ],
    ids=lambda command: command[0],
)
def test_without_a_database_it_is_said_in_words(command: list[str], tmp_path: Path) -> None:
    port = free_port()
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings.local",
        "ATTUNE_HOME": str(tmp_path),
        "SECRET_KEY": "x",
        "DATABASE_URL": f"postgres://ada:secret@127.0.0.1:{port}/attune",
        "REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
    }
    ended = subprocess.run(
        [sys.executable, str(MANAGE), *command], env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    said = ended.stderr.splitlines()
    assert len(said) == 3, ended.stderr
    assert said[0].startswith(f"Postgres does not answer at 127.0.0.1:{port}, database attune: ")
    assert "refused" in said[0]
    assert "pool" not in said[0]  # which would have tried for long
    assert "`make up` starts it" in said[1]
    assert "DATABASE_URL" in said[2]
    assert "secret" not in ended.stderr


@pytest.fixture
def raises(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the next command end in an error."""

    def let(error: BaseException) -> None:
        def execute(argv: list[str]) -> None:
            raise error

        monkeypatch.setattr(command_line, "_ask_for_connections_directly", lambda: None)
        monkeypatch.setattr(command_line, "execute_from_command_line", execute)

    return let


@pytest.mark.django_db(transaction=True)
def test_without_valkey_too(
    raises: Any, settings: Any, capsys: pytest.CaptureFixture[str], valkey: object
) -> None:
    del valkey
    port = free_port()
    settings.REDIS_URL = f"redis://:secret@127.0.0.1:{port}/0"
    raises(redis.ConnectionError("gone"))
    assert command_line.run(["manage.py", "drift"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"Valkey does not answer at 127.0.0.1:{port}: ")
    assert "REDIS_URL" in said
    assert "secret" not in said


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [OperationalError("deadlock detected"), redis.ConnectionError("once")])
def test_a_fault_of_what_runs_is_raised(raises: Any, valkey: object, error: Exception) -> None:
    del valkey
    raises(error)
    with pytest.raises(type(error), match=str(error)):
        command_line.run(["manage.py", "drift"])


def test_what_a_command_refuses_goes_on_to_django(raises: Any) -> None:
    raises(CommandError("no"))
    with pytest.raises(CommandError):
        command_line.run(["manage.py", "drift"])
