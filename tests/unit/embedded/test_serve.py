"""What an engine prints reaches its log without the engine's keys."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embedded import serve
from embedded.engine import Engine

SECRET = "0123456789abcdef"
RUN = "import sys; from embedded import serve; sys.exit(serve.run(sys.argv[2:], secrets=[sys.argv[1]], output=sys.stdout.buffer))"


def start(program: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", RUN, SECRET, sys.executable, "-u", "-c", program]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_secret_is_hidden_however_its_bytes_arrive(size: int) -> None:
    output = io.BytesIO()
    redactor = serve.Redactor([SECRET, SECRET[:8]], output)
    text = f"api_key='{SECRET}', admin='{SECRET[:8]}'\nno end: {SECRET}".encode()
    for start_at in range(0, len(text), size):
        redactor.push(text[start_at : start_at + size])
    redactor.finish()
    assert output.getvalue() == b"api_key='[hidden]', admin='[hidden]'\nno end: [hidden]"


def test_both_outputs_are_passed_on_and_the_exit_code() -> None:
    child = start(f"import sys; print('a {SECRET}'); print('b {SECRET}', file=sys.stderr); sys.exit(3)")
    output, _ = child.communicate(timeout=30)
    assert (output, child.returncode) == (b"a [hidden]\nb [hidden]\n", 3)


def test_the_signal_to_stop_is_passed_on() -> None:
    program = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); print('up'); time.sleep(60)"
    )
    child = start(program)
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) == 7
    child.stdout.close()


def test_the_program_does_not_outlive_it() -> None:
    child = start("import os, time; print(os.getpid()); time.sleep(60)")
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    child.kill()
    child.wait()
    child.stdout.close()
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()


def test_it_ends_with_the_program_although_a_child_of_that_holds_the_output() -> None:
    program = "import subprocess, sys; print('x'); subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    began = time.monotonic()
    child = start(program)
    assert child.wait(20) == 0
    assert time.monotonic() - began < 20
    assert child.stdout is not None
    assert os.read(child.stdout.fileno(), 100) == b"x\n"
    child.stdout.close()


def test_every_engine_is_started_so(tmp_path: Path) -> None:
    engine = Engine(model=tmp_path, port=1, api_key="k" * 20, admin_key="a" * 20)
    command = engine.command(tmp_path / "engine.yaml")
    assert command[1:] == ["-m", "embedded.serve", str(tmp_path / "engine.yaml")]
    assert [engine.options()[name] for name in serve.SECRETS] == ["k" * 20, "a" * 20]
    assert "k" * 20 not in " ".join(command)
