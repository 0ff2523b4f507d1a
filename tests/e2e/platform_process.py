"""The whole platform of `make up` as processes, on a home of its own, and a look into its ledger."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from openai import OpenAI
from psycopg.rows import dict_row

from embedded.home import REPOSITORY, Home, free_port
from embedded.postgres import Postgres


class PlatformProcess:
    """Starts `python -m embedded.up`, waits until it is ready,
    and ends it with everything that it started."""

    def __init__(self, home: Path, **variables: str) -> None:
        self.home = Home(home)
        self.log = home / "up.log"
        self._variables = variables
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, within_s: float = 300.0) -> None:
        """Start it and wait for the line `Ready`."""
        self.home.prepare()
        # the test run's own servers are not this platform's
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name
            not in {"DATABASE_URL", "REDIS_URL", "ENGINE_URLS", "MODEL_PATH", "ADAPTER_STORE", "SECRET_KEY"}
        }
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "embedded.up"],
                cwd=REPOSITORY,
                env={
                    **inherited,
                    "PYTHONPATH": f"{REPOSITORY / 'platform'}{os.pathsep}{REPOSITORY}",
                    "DJANGO_SETTINGS_MODULE": "config.settings.local",
                    "ATTUNE_HOME": str(self.home.path),
                    "ATTUNE_GATEWAY_PORT": str(free_port()),
                    "ATTUNE_WEB_PORT": str(free_port()),
                    **self._variables,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.until(self._is_ready, within_s=within_s, what="the platform to be ready")

    def stop(self, within_s: float = 25.0) -> int:
        """Ask it to stop and return its exit status."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            raise

    @property
    def given(self) -> dict[str, str]:
        """What a person was given: addresses, login, key."""
        given: dict[str, str] = json.loads(self.home.first_run.read_text())
        return given

    def client(self) -> OpenAI:
        """Return an official client with the first key; it retries nothing by itself."""
        return OpenAI(
            base_url=self.given["api_base"], api_key=self.given["api_key"], max_retries=0, timeout=120.0
        )

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Return rows of the ledger as its superuser sees them."""
        secret = self.home.secrets()["postgres_password"]
        url = Postgres(self.home.postgres, secret).url(database="attune")
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def manage(self, *arguments: str) -> str:
        """Run a management command by hand, as an operator does; returns what it printed."""
        variables = json.loads(self.home.environment.read_text())
        ended = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=REPOSITORY,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def add_policy(self, name: str, *, config: dict[str, Any] | None = None) -> None:
        """Give the first tenant a policy that one test has for itself, whatever ran before it."""
        self.rows(
            "INSERT INTO adapters_policy"
            " (id, tenant_id, created_at, name, base_model, temperature, training_enabled, config)"
            " SELECT %s, id, now(), %s, 'tiny', 0.7, true, %s FROM accounts_tenant",
            uuid.uuid4(),
            name,
            json.dumps(config or {}),
        )

    def until(self, holds: Callable[[], bool], *, within_s: float, what: str) -> None:
        """Wait for a condition; a platform that ends meanwhile, or takes too long,
        fails with its logs' ends."""
        end = time.monotonic() + within_s
        while not holds():
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"waited {within_s:g} s for {what}\n{self._logs()}")
            time.sleep(0.3)

    def _is_ready(self) -> bool:
        return "\nReady\n" in self.log.read_text(errors="replace")

    def _logs(self) -> str:
        files = [self.log, *sorted((self.home.path / "log").glob("*.log"))]
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in files)
