"""One session, one sequence: the gradients of one turn a row, and memory that grows with the chunk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM

from trainer.artefact import write_artefact
from trainer.batching import plan
from trainer.contracts import BaselineState, LoraSpec, LossConfig, SampleInput, StepConfig
from trainer.learn import Losses, Lot, Material, SampleTokens, accumulate, student_row
from trainer.lora.state import Adapter, peft_config
from trainer.model.head import Teacher, score
from trainer.model.policy import PolicyModel
from trainer.signals import read_signals, shares
from trainer.teacher import lessons

SPEC = LoraSpec(rank=4, alpha=8.0)
ZERO = BaselineState(mean=0.0, count=1.0)


def session(turns: int, *, seed: int = 0, hints: bool = False) -> list[SampleInput]:
    """Turns that extend one another by a reply of 6 and 4 ids of what was added."""
    generator = torch.Generator().manual_seed(seed)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, 300, (count,), generator=generator).tolist())

    prompt, samples = (1, *ids(6)), []
    for turn in range(turns):
        reply = ids(6)
        samples.append(
            SampleInput(
                sample_id=f"{seed}.{turn}",
                prompt_ids=prompt,
                output_ids=reply,
                output_logprobs=tuple((-3 - torch.rand(6, generator=generator)).tolist()),
                temperature=0.7 + 0.1 * (turn % 3),
                reward=1.0 if turn % 2 else -1.0,
                hint_prompt_ids=((*prompt, 59, 60),) if hints else (),
            )
        )
        prompt = prompt + reply + ids(4)
    return samples


def filled(model: PolicyModel) -> Adapter:
    adapter = Adapter(model, SPEC)
    adapter.initialise(3)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for pair in adapter.pairs.values():
            pair.b.copy_(0.1 * torch.randn(pair.b.shape, generator=generator))
    return adapter


def gradients(
    model: PolicyModel, samples: list[SampleInput], config: StepConfig
) -> tuple[dict[str, torch.Tensor], Losses, dict[int, SampleTokens]]:
    adapter = filled(model)
    signals = read_signals(samples, config, ZERO, vocab=320, max_tokens=2048)
    material = Material(signals, lessons(model, signals, config, lambda _: None), base={}, prox={})
    chosen = dict(enumerate(shares(signals, config)))
    tally = accumulate(model, Lot(material, chosen, config), adapter.pairs.values(), lambda _: None)
    found = {}
    for name, pair in adapter.pairs.items():
        assert pair.a.grad is not None
        assert pair.b.grad is not None
        found[f"{name}.a"], found[f"{name}.b"] = pair.a.grad.clone(), pair.b.grad.clone()
    return found, tally.losses, tally.seen


@pytest.mark.parametrize("kind", ["sampled", "full_kl"])
def test_a_session_has_the_gradients_of_one_turn_a_row(model: PolicyModel, kind: Any) -> None:
    samples = [*session(8, hints=True), *session(3, seed=1), *session(1, seed=2)]
    # ratios far from what an engine would give must not be masked away here
    loss = LossConfig(opd_kind=kind, behaviour_cap="truncate")
    together = StepConfig(loss=loss, lora=SPEC, token_budget=512)
    apart = StepConfig(loss=loss, lora=SPEC, token_budget=512, share_prefixes=False)
    one, one_losses, one_seen = gradients(model, samples, together)
    many, many_losses, many_seen = gradients(model, samples, apart)
    assert max(grad.abs().max().item() for grad in many.values()) > 1e-2
    for name, grad in many.items():
        assert (one[name] - grad).abs().max().item() <= 1e-5, name
    assert one_losses.total == pytest.approx(many_losses.total, abs=1e-5)
    assert one_seen.keys() == many_seen.keys()
    for index, tokens in many_seen.items():
        assert torch.allclose(one_seen[index].prox, tokens.prox, atol=1e-5)


def test_a_session_is_read_once(model: PolicyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[int, ...]] = []
    whole = model.hidden

    def counting(ids: torch.Tensor) -> torch.Tensor:
        read.append(tuple(ids.shape))
        return whole(ids)

    monkeypatch.setattr(model, "hidden", counting)
    gradients(model, session(8), StepConfig(loss=LossConfig(opd_weight=0.0), lora=SPEC))
    assert read == [(1, 7 + 8 * 10 - 4)]


def test_a_session_has_the_gradients_of_peft_one_turn_a_row(
    model: PolicyModel, tiny_directory: Path, tmp_path: Path
) -> None:
    samples = session(4)
    config = StepConfig(loss=LossConfig(opd_weight=0.0, policy_form="decoupled"), lora=SPEC)
    bare = [
        SampleInput.from_json({**sample.to_json(), "output_logprobs": None, "hint_prompt_ids": ()})
        for sample in samples
    ]
    # with behaviour = prox the ratio is 1 and the loss is -advantage x log p:
    # autograd's own answer is at hand
    adapter = filled(model)
    signals = [
        replace(signal, rl=True, advantage=signal.sample.reward or 0.0)
        for signal in read_signals(bare, config, ZERO, vocab=320, max_tokens=2048)
    ]
    material = Material(signals, {}, base={}, prox={})
    accumulate(model, Lot(material, dict(enumerate(shares(signals, config))), config), (), lambda _: None)
    write_artefact(
        tmp_path / "adapter",
        weights=adapter.peft_tensors(),
        optimizer=adapter.optimizer_tensors(),
        config=peft_config(SPEC, "tiny"),
        step=0,
        parent_hash=None,
        probe=(),
        about={},
    )
    theirs = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(tiny_directory), tmp_path / "adapter", is_trainable=True
    )
    total = sum(len(sample.output_ids) for sample in samples)
    for sample in samples:
        ids = torch.tensor([sample.prompt_ids + sample.output_ids])
        first = len(sample.prompt_ids)
        logp = (theirs(ids).logits[0, first - 1 : -1] / sample.temperature).log_softmax(1)
        said = logp.gather(1, ids[0, first:, None]).sum()
        (-(sample.reward or 0.0) * said / total).backward()
    found = dict(theirs.named_parameters())
    for layer in range(2):
        ours = adapter.pairs[f"decoder.layers.{layer}.self_attention.linear_qkv"]
        prefix = f"base_model.model.model.layers.{layer}.self_attn."
        shared = sum(found[f"{prefix}{name}_proj.lora_A.default.weight"].grad for name in "qkv")
        assert ours.a.grad is not None
        assert (ours.a.grad - shared).abs().max().item() <= 1e-5
        down = adapter.pairs[f"decoder.layers.{layer}.mlp.linear_fc2"]
        name = f"base_model.model.model.layers.{layer}.mlp.down_proj.lora_B.default.weight"
        assert down.b.grad is not None
        assert down.b.grad.abs().max().item() > 1e-3
        assert (down.b.grad - found[name].grad).abs().max().item() <= 1e-5


class Widest(TorchDispatchMode):
    """The most rows of any tensor as wide as the vocabulary that a computation made."""

    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.vocab = vocab
        self.rows = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            if isinstance(one, torch.Tensor) and one.dim() > 1 and one.size(-1) == self.vocab:
                self.rows = max(self.rows, one.numel() // self.vocab)
        return made


@pytest.mark.parametrize("taught", [False, True])
@pytest.mark.parametrize("chunk", [4, 32])
def test_logits_exist_for_a_chunk_of_tokens_at_a_time(
    model: PolicyModel, chunk: int, *, taught: bool
) -> None:
    count = 300
    hidden = torch.randn(count, 64, requires_grad=True)
    tokens = torch.randint(0, 320, (count,))
    teacher = Teacher(torch.randn(1, count, 64), torch.ones(1, count)) if taught else None
    # the head itself is [vocab, hidden]: its transpose is as wide as the vocabulary, and hidden rows long
    with Widest(320) as widest:
        found = score(model, hidden, tokens, torch.ones(count), chunk=chunk, teacher=teacher)
        (found.logprob.sum() + (found.kl.sum() if found.kl is not None else 0)).backward()
    assert widest.rows == max(chunk, 64)


def test_what_is_kept_for_the_backward_has_no_vocabulary_in_it(model: PolicyModel) -> None:
    kept: list[tuple[int, ...]] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tuple(tensor.shape))
        return tensor

    filled(model)
    samples = session(8)
    config = StepConfig(loss=LossConfig(opd_weight=0.0), lora=SPEC, chunk_tokens=8)
    signals = read_signals(samples, config, ZERO, vocab=320, max_tokens=2048)
    rows = [student_row(index, signal) for index, signal in enumerate(signals)]
    (batch,) = plan(rows, 512)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        hidden = model.hidden(batch.ids())
        chains, positions = batch.places()
        score(model, hidden[positions, chains], batch.tokens(), torch.ones(48), chunk=8)
    assert (48, 64) in kept
    assert not [size for size in kept if 320 in size]
