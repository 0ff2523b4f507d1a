"""From gradients to a policy that moved, or a reason why it must not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from trainer.contracts import BaselineState, StepReport, StepRequest
from trainer.errors import StepRefusedError
from trainer.learn import Losses, Lot, Material, Tally, student_row
from trainer.lora.state import Adapter
from trainer.metrics import loss_metrics, moved, rollout_metrics, strongest_signal
from trainer.model.policy import PolicyModel
from trainer.optim import clip_gradient, learning_rate, set_learning_rate
from trainer.recorder import Recorder
from trainer.scoring import Tick, logprobs
from trainer.signals import NOISE, shares


@dataclass(frozen=True, slots=True)
class Opened:
    """A step whose samples were read and whose teachers have spoken: only the gradient is missing."""

    request: StepRequest
    run: Recorder
    adapter: Adapter
    material: Material
    parent_hash: str | None
    after: BaselineState
    """The reward baseline, should the step be made."""


Gradient = Callable[[Lot, Tick], Tally]
"""Puts the gradient of a lot on the adapter's parameters."""


def learn(model: PolicyModel, opened: Opened, gradient: Gradient) -> StepReport | None:
    """One pass over the samples (or `epochs` of them).

    A report where the step ends here without a version, otherwise None.
    """
    request, run, adapter = opened.request, opened.run, opened.adapter
    config = request.config
    adamw = adapter.optimizer(config)
    run.metrics["lr"] = learning_rate(config, adapter.step)
    stepped = False
    order = [index for index, signal in enumerate(run.signals) if signal.parts]
    lots = min(config.updates, len(order))
    if config.updates > 1:
        random.Random(request.seed).shuffle(order)  # noqa: S311 - an order, not a secret
    with run.phase("learn", int(run.metrics["tokens"]) * config.epochs) as tick:
        for update in range(lots * config.epochs):
            part = order[update % lots :: config.updates]
            split = shares([run.signals[index] for index in part], config)
            adamw.zero_grad()
            lot = Lot(opened.material, dict(zip(part, split, strict=True)), config)
            tally = gradient(lot, tick)
            run.seen |= tally.seen
            norm = clip_gradient(adapter.pairs, model.ranks, config.grad_clip)
            _refuse_bad_numbers(tally.losses, norm, request, run)
            if request.dry_run:
                return run.report("no_op", "dry_run", "a dry run: only looked", request.baseline)
            if config.lr == 0:
                return run.report("no_op", "lr_zero", "the learning rate is 0", request.baseline)
            if (ess := run.metrics.get("ess", 1.0)) < config.min_ess:
                reason = f"effective sample size {ess:.2f} is under {config.min_ess:.2f}: too far off-policy"
                return run.report("skipped", "low_ess", reason, request.baseline)
            if strongest_signal([run.signals[index] for index in part], tally.seen) > NOISE:
                set_learning_rate(adamw, config, adapter.step + update)
                adamw.step()
                stepped = True
    if not stepped:
        return run.report(
            "no_op", "no_signal", "no signal: the teacher agrees with the policy everywhere", opened.after
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


def check(model: PolicyModel, request: StepRequest, run: Recorder) -> None:
    """Looks at the policy after the step, on the shortest samples;
    raises `StepRefusedError` where it went too far."""
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
