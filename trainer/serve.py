"""The long-lived child: JSON lines in on standard input, JSON lines out, one request at a time.

It may die at any moment and is simply started again: all it holds is the base.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from trainer.artefact import read_parent
from trainer.codec import Contract, ContractError
from trainer.contracts import (
    ErrorLine,
    InitRequest,
    Ping,
    Pong,
    Ready,
    ScoreReport,
    ScoreRequest,
    StepRequest,
    StepsRequest,
)
from trainer.errors import TrainerError
from trainer.lora.layout import LayoutError
from trainer.lora.state import Adapter
from trainer.model.parallel import share
from trainer.model.policy import PolicyModel
from trainer.scoring import sequence_logprobs
from trainer.step import run_init, run_step
from trainer.tenants import run_steps

log = logging.getLogger("trainer")

Request = StepRequest | StepsRequest | InitRequest | ScoreRequest | Ping
Say = Callable[[Contract], None]

REQUESTS: dict[str, type[Request]] = {
    "step": StepRequest,
    "steps": StepsRequest,
    "init": InitRequest,
    "score": ScoreRequest,
    "ping": Ping,
}


def take_stdout() -> TextIO:
    """The real standard output, for the protocol alone;
    whatever else prints goes to standard error from now on."""
    protocol = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return protocol


def serve(model: PolicyModel, lines: TextIO, out: TextIO) -> None:
    """Answers until the input ends. With several ranks, the first reads and speaks and tells the others."""

    def say(message: Contract) -> None:
        if model.ranks.first:
            out.write(json.dumps(message.to_json(), allow_nan=False) + "\n")
            out.flush()

    say(describe(model))
    for line in _shared_lines(model, lines):
        answer(model, line, say)


def describe(model: PolicyModel) -> Ready:
    """What this process holds."""
    return Ready(
        model=str(model.directory),
        device=str(model.ranks.device),
        dtype=str(model.dtype).removeprefix("torch."),
        ranks=model.ranks.world,
        vocab_size=model.shape.vocab,
        max_tokens=model.shape.max_tokens,
        parameters=model.shape.parameters,
    )


def answer(model: PolicyModel, line: str, say: Say) -> None:
    """Carries one line out. Never raises: a bad line, or a fault of the trainer's own,
    is answered as an error."""
    run_id = ""
    try:
        request = parse(line)
        run_id = request.run_id
        for message in _carry_out(model, request, say):
            say(message)
    except ContractError as error:
        say(ErrorLine("bad_request", str(error), run_id or _run_id(line)))
    except Exception as error:  # the process must outlive any one request
        log.exception("request %s failed", run_id)
        say(ErrorLine("internal", f"{type(error).__name__}: {error}", run_id))


def parse(line: str) -> Request:
    """The request in a line; raises `ContractError`."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ContractError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ContractError("expected an object")
    kind = data.get("kind")
    if kind not in REQUESTS:
        raise ContractError(f"kind {kind!r} is none of {', '.join(REQUESTS)}")
    return REQUESTS[kind].from_json(data)


def _carry_out(model: PolicyModel, request: Request, say: Say) -> Sequence[Contract]:
    if isinstance(request, Ping):
        return [Pong(request.run_id)]
    if isinstance(request, StepRequest):
        return [run_step(model, request, say)]
    if isinstance(request, StepsRequest):
        return run_steps(model, request.steps, say)
    if isinstance(request, InitRequest):
        return [run_init(model, request, say)]
    return [_score(model, request)]


def _score(model: PolicyModel, request: ScoreRequest) -> ScoreReport:
    size: dict[str, Any] = {
        "budget": request.token_budget,
        "chunk": 128,
        "temperature": request.temperature,
    }
    if any(max(ids) >= model.shape.vocab for ids in request.sequences):
        raise ContractError("ScoreRequest.sequences: a token id outside the vocabulary")
    if request.adapter_dir is None:
        with model.bare():
            return ScoreReport(request.run_id, tuple(sequence_logprobs(model, request.sequences, **size)))
    try:
        parent = read_parent(Path(request.adapter_dir), None)
        Adapter(model, parent.spec).load(parent.weights, None)
    except (TrainerError, LayoutError) as error:
        raise ContractError(f"ScoreRequest.adapter_dir: {error}") from error
    return ScoreReport(request.run_id, tuple(sequence_logprobs(model, request.sequences, **size)))


def _shared_lines(model: PolicyModel, lines: TextIO) -> Iterator[str]:
    """Non-empty lines as the first rank reads them, on every rank; ends everywhere at the end of input."""
    while True:
        line = share(lines.readline() if model.ranks.first else "", model.ranks)
        if not line:
            return
        if line.strip():
            yield line


def _run_id(line: str) -> str:
    """Whose the bad line was, where that much can be read."""
    try:
        found = json.loads(line).get("run_id", "")
    except (ValueError, AttributeError):
        return ""
    return found if isinstance(found, str) else ""
