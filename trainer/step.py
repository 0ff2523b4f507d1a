"""One step of one policy: parent's files and a batch in, the next version's files and a report out.

Everything the step depends on is in the request and the files it names: nothing is kept in the process between
steps, so a step after a restart is the same step.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import torch

from trainer.advantage import updated_baseline
from trainer.artefact import Parent, check_target, read_parent, write_artefact
from trainer.contracts import (
    Artefact,
    BaselineState,
    InitRequest,
    Probe,
    StepReport,
    StepRequest,
)
from trainer.errors import StepFailedError, StepRefusedError
from trainer.learn import Losses, Material, accumulate, student_row
from trainer.lora.layout import LayoutError
from trainer.lora.state import Adapter, peft_config
from trainer.metrics import loss_metrics, moved, rollout_metrics, sizes, strongest_signal
from trainer.model.parallel import share
from trainer.model.policy import PolicyModel
from trainer.optim import clip_gradient
from trainer.recorder import Notify, Recorder
from trainer.scoring import Tick, hidden_states, logprobs, sequence_logprobs
from trainer.signals import NOISE, Signal, read_signals, rewards_used, shares
from trainer.teacher import lessons


def run_step(model: PolicyModel, request: StepRequest, notify: Notify = lambda _: None) -> StepReport:
    """Makes the step, or says why not; never raises for what the request, the disk or the numbers are to blame for.

    All ranks call it with the same request; the files are written by the first.
    """
    run = Recorder(request, notify)
    try:
        return _step(model, request, run)
    except StepRefusedError as error:
        return run.report("refused", error.code, str(error), request.baseline)
    except StepFailedError as error:
        return run.report("failed", error.code, str(error), request.baseline)


def run_init(model: PolicyModel, request: InitRequest, notify: Notify = lambda _: None) -> StepReport:
    """Writes a fresh adapter: B = 0, so it answers as the base does, with an optimiser that has seen nothing."""
    run = Recorder(request, notify)
    try:
        check_target(Path(request.out_dir), _artefact_bytes(model, request.lora.rank))
        adapter = Adapter(model, request.lora)
        adapter.initialise(request.seed)
        artefact = _write(model, adapter, request, run, parent_hash=None)
    except StepFailedError as error:
        return run.report("failed", error.code, str(error), BaselineState())
    return run.report("made", "ok", "a fresh adapter was written", BaselineState(), artefact)


def _step(model: PolicyModel, request: StepRequest, run: Recorder) -> StepReport:
    config = request.config
    run.signals = read_signals(
        request.samples, config, request.baseline, vocab=model.shape.vocab, max_tokens=model.shape.max_tokens
    )
    run.metrics = {"lr": config.lr, **sizes(run.signals, config)}
    after = updated_baseline(request.baseline, rewards_used(run.signals), config)
    if not any(s.opd or (s.rl and abs(s.advantage) > NOISE) for s in run.signals):
        return run.report("no_op", "no_signal", _why_no_signal(run.signals), after)
    check_target(Path(request.out_dir), _artefact_bytes(model, config.lora.rank))
    with run.phase("load", 1):
        adapter, parent_hash = _load(model, request)
    material = _gather(model, request, run)
    ended = _learn(model, adapter, material, request=request, run=run, after=after)
    if ended is not None:
        return ended
    _check(model, request, run)
    artefact = _write(model, adapter, request, run, parent_hash=parent_hash)
    run.metrics["step"] = float(artefact.step)
    return run.report("made", "ok", "a version was made", after, artefact)


def _load(model: PolicyModel, request: StepRequest) -> tuple[Adapter, str | None]:
    """The parent's adapter and optimiser on the model, or fresh ones; and the parent's hash."""
    spec = request.config.lora
    adapter = Adapter(model, spec)
    if request.parent_dir is None:
        adapter.initialise(request.seed)
        return adapter, None
    parent: Parent = read_parent(Path(request.parent_dir), request.parent_hash)
    if parent.spec != spec:
        raise StepFailedError("bad_parent", f"the parent's adapter is {parent.spec}, the request's {spec}")
    try:
        adapter.load(parent.weights, parent.optimizer)
    except LayoutError as error:
        raise StepFailedError("bad_parent", f"{request.parent_dir}: {error}") from error
    return adapter, parent.hash


def _gather(model: PolicyModel, request: StepRequest, run: Recorder) -> Material:
    """All that is computed without a gradient before the pass: teachers, and prox and base where they are needed."""
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
        if config.updates > 1:
            prox = scores(tick)
            if taught and config.loss.opd_kind in ("top_k", "top_k_select"):
                states = hidden_states(model, rows, budget=config.token_budget)
    return Material(signals=run.signals, lessons=taught, base=base, prox=prox, prox_hidden=states)


def _learn(
    model: PolicyModel,
    adapter: Adapter,
    material: Material,
    *,
    request: StepRequest,
    run: Recorder,
    after: BaselineState,
) -> StepReport | None:
    """One pass over the samples. A report where the step ends here without a version, otherwise None."""
    config = request.config
    adamw = adapter.optimizer(config)
    stepped = False
    order = [index for index, signal in enumerate(run.signals) if signal.parts]
    if config.updates > 1:
        random.Random(request.seed).shuffle(order)  # noqa: S311 - an order, not a secret
    with run.phase("learn", int(run.metrics["tokens"])) as tick:
        for update in range(min(config.updates, len(order))):
            part = order[update :: config.updates]
            split = shares([run.signals[index] for index in part], config)
            adamw.zero_grad()
            losses, seen = accumulate(model, material, dict(zip(part, split, strict=True)), config, tick)
            run.seen |= seen
            norm = clip_gradient(adapter.pairs, model.ranks, config.grad_clip)
            _refuse_bad_numbers(losses, norm, request, run)
            if config.lr == 0:
                return run.report("no_op", "lr_zero", "the learning rate is 0", request.baseline)
            if (ess := run.metrics.get("ess", 1.0)) < config.min_ess:
                reason = f"effective sample size {ess:.2f} is under {config.min_ess:.2f}: too far off-policy"
                return run.report("skipped", "low_ess", reason, request.baseline)
            if strongest_signal([run.signals[index] for index in part], seen) > NOISE:
                adamw.step()
                stepped = True
    if not stepped:
        return run.report(
            "no_op", "no_signal", "no signal: the teacher agrees with the policy everywhere", after
        )
    adapter.adopt(adamw)
    adamw.zero_grad()
    return None


def _refuse_bad_numbers(losses: Losses, norm: float, request: StepRequest, run: Recorder) -> None:
    """Writes the pass's metrics down and raises `StepRefusedError` where one is past its bound."""
    config = request.config
    run.metrics |= {
        **rollout_metrics(run.seen, config),
        **loss_metrics(losses, run.seen, config),
        "grad_norm": norm,
    }
    if not (math.isfinite(losses.total) and math.isfinite(norm)):
        raise StepRefusedError("not_finite", f"loss {losses.total}, gradient norm {norm}")
    gap = run.metrics.get("rollout_k3", 0.0)
    if not gap <= config.max_rollout_k3:
        raise StepRefusedError(
            "rollout_kl",
            f"k3(engine, learner) {gap:.3g} is over {config.max_rollout_k3:g}: another policy's replies",
        )
    if norm > config.max_grad_norm:
        raise StepRefusedError("grad_norm", f"gradient norm {norm:.3g} is over {config.max_grad_norm:g}")


def _check(model: PolicyModel, request: StepRequest, run: Recorder) -> None:
    """Looks at the policy after the step, on the shortest samples; raises `StepRefusedError` where it went too far."""
    config = request.config
    rows, tokens = [], 0
    for row in sorted(
        (student_row(i, run.signals[i]) for i in run.seen), key=lambda row: (len(row.ids), row.key)
    ):
        if tokens >= config.check_tokens:
            break
        rows.append(row)
        tokens += row.scored
    if not rows:
        return
    with run.phase("check", tokens) as tick:
        heat = {row.key: run.signals[row.key].temperature for row in rows}
        now = logprobs(model, rows, heat, budget=config.token_budget, chunk=config.chunk_tokens, tick=tick)
    run.metrics |= moved([run.seen[row.key].prox for row in rows], [now[row.key] for row in rows])
    change = run.metrics["step_k3"]
    if not math.isfinite(change):
        raise StepRefusedError("not_finite", "the policy after the step is not finite")
    if change > config.max_step_k3:
        raise StepRefusedError("step_kl", f"k3 of the step {change:.3g} is over {config.max_step_k3:g}")


def _write(
    model: PolicyModel,
    adapter: Adapter,
    request: StepRequest | InitRequest,
    run: Recorder,
    *,
    parent_hash: str | None,
) -> Artefact:
    with run.phase("write", 1 + len(request.probe_ids)) as tick:
        probe = _probe(model, request)
        tick(len(request.probe_ids))
        weights, optimizer = adapter.peft_tensors(), adapter.optimizer_tensors()
        about = {"run_id": request.run_id, "seed": request.seed}
        if isinstance(request, StepRequest):
            about["config"] = request.config.to_json()
        return _on_first(
            model,
            lambda: write_artefact(
                Path(request.out_dir),
                weights=weights,
                optimizer=optimizer,
                config=peft_config(adapter.spec, request.base_model or model.directory.name),
                step=adapter.step,
                parent_hash=parent_hash,
                probe=probe,
                about=about,
            ),
        )


def _probe(model: PolicyModel, request: StepRequest | InitRequest) -> tuple[Probe, ...]:
    """What the new adapter and the bare base say of the probe sequences. Raises where that is not finite."""
    size = {"budget": 4096, "chunk": 128}
    adapted = sequence_logprobs(model, request.probe_ids, **size)
    with model.bare():
        bare = sequence_logprobs(model, request.probe_ids, **size)
    if not all(math.isfinite(value) for one in adapted for value in one):
        raise StepRefusedError("not_finite", "the policy after the step is not finite on the probes")
    return tuple(
        Probe(ids=ids, logprobs=mine, base_logprobs=theirs)
        for ids, mine, theirs in zip(request.probe_ids, adapted, bare, strict=True)
    )


def _on_first(model: PolicyModel, write: Callable[[], Artefact]) -> Artefact:
    """Runs on the first rank; its result, or its failure, is every rank's."""
    result: tuple[Artefact | None, str, str] = (None, "", "")
    if model.ranks.first:
        try:
            result = (write(), "", "")
        except StepFailedError as error:
            result = (None, error.code, str(error))
    artefact, code, message = share(result, model.ranks)
    if artefact is None:
        raise StepFailedError(code, message)
    return artefact


def _why_no_signal(signals: list[Signal]) -> str:
    if any(signal.rl for signal in signals):
        return "no signal: every reward equals the baseline and there is no hint"
    reasons = sorted({signal.reason for signal in signals if signal.reason})
    return f"no signal: {' | '.join(reasons) or 'no samples'}"


def _artefact_bytes(model: PolicyModel, rank: int) -> int:
    """About what an artefact takes: weights and two moments of each, float32, and as much again to be safe."""
    shape = model.shape
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    widths = 4 * shape.hidden + 2 * (queries + keys) + queries + keys + 3 * (shape.hidden + shape.ffn)
    return 4 * 3 * 2 * rank * shape.layers * widths
