"""A real gateway process (uvicorn) on a free port."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from embedded.home import free_port

ROOT = Path(__file__).resolve().parents[2]
MAX_BODY_BYTES = 100_000
CONTEXT_LENGTH = 600
MAX_REPLY_TOKENS = 64
DATABASE_POOL = 4
CONCURRENCY = 40


class GatewayProcess:
    """Started once for many tests; holds nothing between them."""

    def __init__(self, *, model: Path, log: Path, **env: str) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        self.application_name = f"attune-gateway-{self.url.rpartition(':')[2]}"
        """What the database knows its connections by; several gateways of one run share a database."""
        self.log = log
        self._env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "config.settings.local",
            "SECRET_KEY": "tests-only",
            "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
            "DATABASE_URL": f"{os.environ['DATABASE_URL']}?application_name={self.application_name}",
            "MODEL_PATH": str(model),
            "MAX_BODY_BYTES": str(MAX_BODY_BYTES),
            "CONTEXT_LENGTH": str(CONTEXT_LENGTH),
            "MAX_REPLY_TOKENS": str(MAX_REPLY_TOKENS),
            "DATABASE_POOL": str(DATABASE_POOL),
            "GATEWAY_CONCURRENCY": str(CONCURRENCY),
            "LOG_LEVEL": "DEBUG",
            **env,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, within_s: float = 60.0) -> "GatewayProcess":
        """Start and wait until it answers."""
        port = self.url.rpartition(":")[2]
        # with the access log on: nothing secret may get into that either
        command = ["-m", "uvicorn", "config.asgi_gateway:application", "--port", port]
        command += ["--http", "apps.gateway.http:Protocol"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, *command, "--timeout-graceful-shutdown", "5"],
                cwd=ROOT,
                env=self._env,
                stdout=output,
                stderr=output,
            )
        end = time.monotonic() + within_s
        while True:
            try:
                httpx.get(f"{self.url}/healthz", trust_env=False)
                return self
            except httpx.TransportError:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the gateway did not start: {self.log.read_text()}") from None
                time.sleep(0.05)

    def terminate(self) -> None:
        """Ask it to stop, as a supervisor does; it finishes what runs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def wait(self, within_s: float = 15.0) -> int:
        """Return its exit status."""
        assert self._process is not None
        return self._process.wait(within_s)

    def kill(self) -> None:
        """End it as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop it in the middle of whatever it does, as a machine that is paused or swaps."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Make sure that it is gone."""
        if self._process is not None and self._process.poll() is None:
            self.terminate()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
