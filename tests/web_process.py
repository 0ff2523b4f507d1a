"""A real web process (uvicorn) on a free port: dashboard, REST, console."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from django.conf import settings

from embedded.home import free_port

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def running_web(log: Path, within_s: float = 180.0, **env: str) -> Iterator[str]:
    """Run a web process on the tests' database; yields its address once it answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "config.asgi_web:application", "--port", str(port)],
            cwd=ROOT,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "config.settings.local",
                "SECRET_KEY": settings.SECRET_KEY,
                "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
                "DATABASE_POOL": "4",
                **env,
            },
            stdout=output,
            stderr=output,
        )
    try:
        _wait(url, process, log, within_s)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path, within_s: float) -> None:
    end = time.monotonic() + within_s
    while True:
        try:
            httpx.get(f"{url}/healthz", trust_env=False)
            return
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the web did not start: {log.read_text()}") from None
            time.sleep(0.1)
