"""One step of one policy: parent's files and a batch in, the next version's files and a report out.

Everything the step depends on is in the request and the files it names: nothing is kept in the process
between steps, so a step after a restart is the same step.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

from trainer.advantage import updated_baseline
from trainer.artefact import Parent, check_target, read_parent
from trainer.contracts import BaselineState, InitRequest, StepConfig, StepReport, StepRequest
from trainer.errors import StepFailedError, StepRefusedError
from trainer.learn import Material, accumulate, student_row
from trainer.lora.layout import LayoutError
from trainer.lora.state import Adapter
from trainer.metrics import sizes
from trainer.model.policy import PolicyModel
from trainer.recorder import Notify, Recorder
from trainer.scoring import Tick, hidden_states, logprobs
from trainer.signals import NOISE, Signal, read_signals, rewards_used
from trainer.teacher import lessons
from trainer.update import Gradient, Opened, check, learn
from trainer.version import artefact_bytes, write


def run_step(model: PolicyModel, request: StepRequest, notify: Notify = lambda _: None) -> StepReport:
    """Makes the step, or says why not; never raises for what the request,
    the disk or the numbers are to blame for.

    All ranks call it with the same request; the files are written by the first.
    """
    run = Recorder(request, notify)

    def make() -> StepReport:
        opened = open_step(model, request, run)
        if isinstance(opened, StepReport):
            return opened
        return close_step(
            model, opened, lambda lot, tick: accumulate(model, lot, opened.adapter.pairs.values(), tick)
        )

    return guarded(run, request, make)


T = TypeVar("T")


def guarded(run: Recorder, request: StepRequest, make: Callable[[], T]) -> T | StepReport:
    """What `make` gives, or a report of what stopped it."""
    try:
        return make()
    except StepRefusedError as error:
        return run.report("refused", error.code, str(error), request.baseline)
    except StepFailedError as error:
        return run.report("failed", error.code, str(error), request.baseline)


def run_init(model: PolicyModel, request: InitRequest, notify: Notify = lambda _: None) -> StepReport:
    """Writes a fresh adapter: B = 0, so it answers as the base does,
    with an optimiser that has seen nothing."""
    run = Recorder(request, notify)
    try:
        check_target(Path(request.out_dir), artefact_bytes(model, request.lora.rank))
        adapter = Adapter(model, request.lora)
        adapter.initialise(request.seed)
        artefact = write(model, adapter, request, run, parent_hash=None, baseline=BaselineState())
    except StepFailedError as error:
        return run.report("failed", error.code, str(error), BaselineState())
    return run.report("made", "ok", "a fresh adapter was written", BaselineState(), artefact)


def open_step(model: PolicyModel, request: StepRequest, run: Recorder) -> Opened | StepReport:
    """Everything before the pass; leaves the parent's adapter on the model.

    A report where there is nothing to do.
    """
    config = request.config
    longest = min(model.shape.max_tokens, config.max_sequence_tokens or model.shape.max_tokens)
    run.signals = read_signals(
        request.samples, config, request.baseline, vocab=model.shape.vocab, max_tokens=longest
    )
    run.metrics = {"lr": config.lr, **sizes(run.signals, config)}
    after = updated_baseline(request.baseline, rewards_used(run.signals), config)
    if not any(s.opd or (s.rl and abs(s.advantage) > NOISE) for s in run.signals):
        return run.report("no_op", "no_signal", _why_no_signal(run.signals, request.baseline, config), after)
    if not request.dry_run:
        check_target(Path(request.out_dir), artefact_bytes(model, config.lora.rank))
    with run.phase("load", 1):
        adapter = Adapter(model, config.lora)
        parent_hash = load_adapter(adapter, request)
    return Opened(request, run, adapter, _gather(model, request, run), parent_hash, after)


def close_step(model: PolicyModel, opened: Opened, gradient: Gradient) -> StepReport:
    """The pass and everything after it, with the parent's adapter on the model."""
    run = opened.run
    ended = learn(model, opened, gradient)
    if ended is not None:
        return ended
    check(model, opened.request, run)
    artefact = write(
        model, opened.adapter, opened.request, run, parent_hash=opened.parent_hash, baseline=opened.after
    )
    run.metrics["step"] = float(artefact.step)
    return run.report("made", "ok", "a version was made", opened.after, artefact)


def load_adapter(adapter: Adapter, request: StepRequest) -> str | None:
    """Puts the parent's adapter and optimiser on the model, or fresh ones; returns the parent's hash."""
    spec = request.config.lora
    if request.parent_dir is None:
        adapter.initialise(request.seed)
        return None
    parent: Parent = read_parent(Path(request.parent_dir), request.parent_hash)
    if parent.spec != spec:
        raise StepFailedError("bad_parent", f"the parent's adapter is {parent.spec}, the request's {spec}")
    try:
        adapter.load(parent.weights, parent.optimizer)
    except LayoutError as error:
        raise StepFailedError("bad_parent", f"{request.parent_dir}: {error}") from error
    return parent.hash


def _gather(model: PolicyModel, request: StepRequest, run: Recorder) -> Material:
    """All that is computed without a gradient before the pass:
    teachers, and prox and base where they are needed."""
    config = request.config
    distilled = sum(len(s.sample.output_ids) * len(s.teachers) for s in run.signals)
    with run.phase("teacher", distilled) as tick:
        taught = lessons(model, run.signals, config, tick)
    used = [index for index, signal in enumerate(run.signals) if signal.parts]
    rows = [student_row(index, run.signals[index]) for index in used]
    heat = {index: run.signals[index].temperature for index in used}
    base, prox, states = {}, {}, {}

    def scores(tick: Tick) -> dict[int, torch.Tensor]:
        return logprobs(model, rows, heat, budget=config.token_budget, chunk=config.chunk_tokens, tick=tick)

    with run.phase("prox", int(run.metrics["tokens"])) as tick:
        if config.loss.kl_weight > 0:
            with model.bare():
                base = scores(lambda _: None)
        if config.updates * config.epochs > 1:
            prox = scores(tick)
            if taught and config.loss.opd_kind in ("top_k", "top_k_select"):
                states = hidden_states(model, rows, budget=config.token_budget)
    return Material(signals=run.signals, lessons=taught, base=base, prox=prox, prox_hidden=states)


def _why_no_signal(signals: list[Signal], before: BaselineState, config: StepConfig) -> str:
    """In the words of somebody who gave a thumb and wonders why nothing came of it."""
    if verdicts := sum(signal.rl for signal in signals):
        if config.advantage == "ema" and before.mean is None and before.prior_mean is None:
            why = "one verdict alone has" if verdicts == 1 else "verdicts that are all alike have"
            why += " nothing to be compared with yet"
        else:
            why = "every verdict is as good as what it is compared with"
        return f"no signal: {why}; one that differs, or a correction in words, teaches"
    reasons = sorted({signal.reason for signal in signals if signal.reason})
    return f"no signal: {' | '.join(reasons) or 'no samples'}"
