"""Requests that nobody thought of: schemathesis on /v1."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.gateway_process import ROOT, GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

SCHEMA = Path(__file__).with_name("openapi.json")
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "negative_data_rejection,ignored_auth,unsupported_method"
)


@pytest.mark.long
def test_schemathesis_finds_nothing(gateway: GatewayProcess, somebody: Somebody, engine: FakeEngine) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", str(SCHEMA), "--url", gateway.url),
            *("--header", f"Authorization: Bearer {somebody.secret}", "--checks", CHECKS),
            *("--max-examples", "40", "--seed", "7", "--phases", "coverage,fuzzing", "--no-color"),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT / "tests" / "api",
        check=False,
    )

    shown = (ran.stdout + ran.stderr).replace(somebody.secret, "KEY")
    assert ran.returncode == 0, shown[-6000:]
