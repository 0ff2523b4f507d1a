"""Which sample takes part in which loss, with what advantage, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.advantage import Scored, advantages
from trainer.contracts import BaselineState, Part, SampleInput, StepConfig

NOISE = 1e-5
"""An advantage below this, in nats or reward, is arithmetic, not signal:
Adam would blow it up to a whole step."""

ALONE = "no other rollout of its task to be compared with"


@dataclass(frozen=True, slots=True)
class Signal:
    """What one sample has to say."""

    sample: SampleInput
    rl: bool
    opd: bool
    advantage: float
    teachers: tuple[tuple[int, ...], ...]
    """Hinted prompts that fit the model."""
    in_ratio: bool
    """Its engine log-probabilities are of a distribution that the trainer can compute."""
    reason: str

    @property
    def temperature(self) -> float:
        """What its log-probabilities are taken at: as sampled; a greedy reply has none, so 1."""
        return self.sample.temperature or 1.0

    @property
    def parts(self) -> tuple[Part, ...]:
        found: list[Part] = []
        if self.rl:
            found.append("rl")
        if self.opd:
            found.append("opd")
        return tuple(found)


def read_signals(
    samples: Sequence[SampleInput],
    config: StepConfig,
    baseline: BaselineState,
    *,
    vocab: int,
    max_tokens: int,
) -> list[Signal]:
    """One `Signal` for each sample, in order."""
    fits = [_misfit(sample.prompt_ids, sample, vocab, max_tokens) for sample in samples]
    no_rl = [misfit or _no_reward(sample, config) for sample, misfit in zip(samples, fits, strict=True)]
    scored = [
        Scored(sample.total_reward, sample.group, sample.step)
        for sample, why in zip(samples, no_rl, strict=True)
        if not why and sample.total_reward is not None
    ]
    found = iter(advantages(scored, baseline, config))
    gains = [0.0 if why else next(found) for why in no_rl]
    no_rl = [why or ("" if gain is not None else ALONE) for why, gain in zip(no_rl, gains, strict=True)]
    signals = []
    for sample, misfit, why_no_rl, gain in zip(samples, fits, no_rl, gains, strict=True):
        teachers = tuple(
            prompt for prompt in sample.hint_prompt_ids if not _misfit(prompt, sample, vocab, max_tokens)
        )[: config.loss.hints]
        why_no_opd = misfit or _no_hint(sample, teachers, config)
        reasons = dict.fromkeys(reason for reason in (why_no_rl, why_no_opd) if reason)
        signals.append(
            Signal(
                sample=sample,
                rl=not why_no_rl,
                opd=not why_no_opd,
                advantage=gain or 0.0,
                teachers=teachers if not why_no_opd else (),
                in_ratio=not _no_ratio(sample),
                reason="; ".join(reasons),
            )
        )
    return signals


def rewards_used(signals: Sequence[Signal]) -> list[float]:
    """Rewards of the samples that take part in the reward loss."""
    return [s.sample.total_reward for s in signals if s.rl and s.sample.total_reward is not None]


@dataclass(frozen=True, slots=True)
class Shares:
    """A sample's part of each mean, for one of its tokens; see `losses.combined.TokenBatch`."""

    rl: float
    opd: float
    kl: float


def shares(signals: Sequence[Signal], config: StepConfig) -> list[Shares]:
    """Over these samples, counted before any token is masked.

    All losses are means over the same tokens (or replies): those of every sample that takes part in any of
    them. With a mean of its own each, three short rewarded replies would outweigh five long distilled ones
    token by token.
    """
    used = [signal for signal in signals if signal.parts]
    tokens = sum(len(signal.sample.output_ids) for signal in used)
    found = []
    for signal in signals:
        whole = {
            "token": tokens,
            "sequence": len(used) * len(signal.sample.output_ids),
            "constant": len(used) * config.loss.constant_tokens,
        }[config.loss.aggregation]
        share = signal.sample.weight / whole if signal.parts else 0.0
        found.append(Shares(share * signal.rl, share * signal.opd, share))
    return found


def _misfit(prompt: tuple[int, ...], sample: SampleInput, vocab: int, max_tokens: int) -> str:
    if len(prompt) + len(sample.output_ids) > max_tokens:
        return f"longer than the limit of {max_tokens} tokens"
    if max(prompt) >= vocab or max(sample.output_ids) >= vocab:
        return f"a token id outside the vocabulary of {vocab}"
    return ""


def _no_ratio(sample: SampleInput) -> str:
    if sample.temperature == 0:
        return "greedy: no behaviour distribution"
    if not sample.exact_sampling:
        return "truncated or penalised sampling: no exact ratio"
    if sample.output_logprobs is None:
        return "no engine log-probabilities"
    return ""


def _no_reward(sample: SampleInput, config: StepConfig) -> str:
    if config.loss.rl_weight == 0:
        return "rewards are switched off"
    if sample.total_reward is None:
        return "no reward"
    if sample.truncated:
        return "cut by the length limit: no reward"
    return _no_ratio(sample)


def _no_hint(sample: SampleInput, teachers: tuple[tuple[int, ...], ...], config: StepConfig) -> str:
    if config.loss.opd_weight == 0:
        return "distillation is switched off"
    if not sample.hint_prompt_ids:
        return "no hint"
    return "" if teachers else "its hinted prompt does not fit the model"
