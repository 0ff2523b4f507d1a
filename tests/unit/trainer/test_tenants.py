"""Many policies in one pass: the steps of one at a time, to the last bit, whoever else is there."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from trainer.artefact import MANIFEST, OPTIMIZER, WEIGHTS
from trainer.contracts import (
    TOGETHER_AT_MOST,
    TOGETHER_BELOW,
    BaselineState,
    LoraSpec,
    ProgressEvent,
    SampleInput,
    StepReport,
    StepRequest,
)
from trainer.learn import Lot, Material, accumulate
from trainer.lora.state import Adapter
from trainer.model.policy import PolicyModel
from trainer.signals import read_signals, shares
from trainer.step import run_step
from trainer.tenants import Member, accumulate_together, grouped, run_steps

from .conftest import HINTED, PROMPT

Make = Callable[..., SampleInput]
For = Callable[..., StepRequest]
ZERO = BaselineState(mean=0.0, count=1.0)


def files(report: StepReport) -> tuple[bytes, bytes]:
    assert report.outcome == "made", report.reason
    assert report.artefact is not None
    return tuple((Path(report.artefact.dir) / name).read_bytes() for name in (WEIGHTS, OPTIMIZER))  # type: ignore[return-value]


def batch_of(sample: Make, tenant: int) -> list[SampleInput]:
    """Of different lengths for different tenants, some with hints."""
    return [
        sample(
            10 * tenant + turn,
            length=3 + 2 * tenant + turn,
            reward=1.0 if (tenant + turn) % 2 else -1.0,
            hint_prompt_ids=(HINTED,) if turn else (),
        )
        for turn in range(2)
    ]


@pytest.mark.parametrize("kind", ["sampled", "full_kl", "top_k"])
def test_steps_together_write_the_bytes_of_steps_alone(
    model: PolicyModel, sample: Make, request_for: For, kind: str
) -> None:
    alone, together, parents = [], [], []
    for tenant in range(4):
        first = run_step(model, request_for(f"p{tenant}", batch_of(sample, tenant + 4), seed=tenant))
        assert first.artefact is not None
        parents.append(first.artefact.dir)
    for tenant, parent in enumerate(parents):
        fields = {"parent_dir": parent, "baseline": ZERO, "loss_opd_kind": kind, "probe_ids": (PROMPT,)}
        alone.append(run_step(model, request_for(f"a{tenant}", batch_of(sample, tenant), **fields)))
        together.append(request_for(f"t{tenant}", batch_of(sample, tenant), **fields))
    assert grouped(together) == [[0, 1, 2, 3]]
    found = run_steps(model, together)
    assert [report.run_id for report in found] == ["t0", "t1", "t2", "t3"]
    for one, other in zip(alone, found, strict=True):
        assert files(one) == files(other)
        assert one.metrics == other.metrics
        assert one.samples == other.samples
        assert one.artefact is not None
        assert other.artefact is not None
        assert one.artefact.probe == other.artefact.probe


def test_a_tenants_step_does_not_depend_on_who_else_is_there(
    model: PolicyModel, sample: Make, request_for: For, tmp_path: Path
) -> None:
    def mine(name: str) -> StepRequest:
        return request_for(name, batch_of(sample, 1), baseline=ZERO)

    def other(name: str, tenant: int) -> StepRequest:
        return request_for(name, batch_of(sample, tenant), baseline=ZERO, seed=tenant, lr=0.9)

    expected = files(run_steps(model, [mine("alone")])[0])
    assert files(run_steps(model, [other("x0", 5), mine("last")])[1]) == expected
    assert files(run_steps(model, [mine("first"), other("x1", 2), other("x2", 3)])[0]) == expected
    # not even on one that blows up
    poisoned = run_step(model, request_for("parent", batch_of(sample, 3), baseline=ZERO))
    assert poisoned.artefact is not None
    _poison(Path(poisoned.artefact.dir))
    bad = request_for("bad", batch_of(sample, 2), baseline=ZERO, parent_dir=poisoned.artefact.dir)
    found = run_steps(model, [bad, mine("beside")])
    assert (found[0].outcome, found[0].code) == ("refused", "not_finite")
    assert files(found[1]) == expected


def _poison(directory: Path) -> None:
    from safetensors.torch import load, save

    tensors = load((directory / WEIGHTS).read_bytes())
    tensors[min(tensors)][0, 0] = float("nan")
    (directory / WEIGHTS).write_bytes(save(tensors))
    (directory / MANIFEST).unlink()


def test_ones_fault_stops_no_other(model: PolicyModel, sample: Make, request_for: For) -> None:
    requests = [
        request_for("gone", batch_of(sample, 1), baseline=ZERO, parent_dir="/nowhere"),
        request_for("quiet", [sample(1, reward=0.0)], baseline=ZERO),
        request_for("good", batch_of(sample, 2), baseline=ZERO),
        request_for("far", batch_of(sample, 3), baseline=ZERO, max_step_k3=1e-12),
        request_for("dry", batch_of(sample, 3), baseline=ZERO, dry_run=True),
    ]
    found = run_steps(model, requests)
    assert [(one.outcome, one.code) for one in found] == [
        ("failed", "bad_parent"), ("no_op", "no_signal"), ("made", "ok"), ("refused", "step_kl"), ("no_op", "dry_run"),
    ]  # fmt: skip
    assert [Path(request.out_dir).exists() for request in requests] == [False, False, True, False, False]


def test_gradients_together_are_those_of_one_at_a_time(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    members, alone = [], []
    for tenant in range(5):
        request = request_for(f"{tenant}", batch_of(sample, tenant))
        signals = read_signals(request.samples, request.config, ZERO, vocab=320, max_tokens=2048)
        lot = Lot(
            Material(signals, {}, base={}, prox={}),
            dict(enumerate(shares(signals, request.config))),
            request.config,
        )
        adapter = Adapter(model, LoraSpec())
        adapter.initialise(tenant)
        with torch.no_grad():
            for pair in adapter.pairs.values():
                pair.b.normal_(0, 0.1, generator=torch.Generator().manual_seed(tenant))
        members.append(Member(lot, adapter.take_off()))
        accumulate(model, lot, (), lambda _: None)
        alone.append({name: (pair.a.grad, pair.b.grad) for name, pair in adapter.pairs.items()})
    accumulate_together(model, members, lambda _: None)
    for member, expected in zip(members, alone, strict=True):
        for name, pair in member.values.items():
            for mine, theirs in zip((pair.a.grad, pair.b.grad), expected[name], strict=True):
                assert mine is not None
                assert theirs is not None
                assert (mine - theirs).abs().max().item() <= 1e-5


def test_a_pass_holds_no_more_tokens_than_the_budget(
    model: PolicyModel, sample: Make, request_for: For, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    whole = model.hidden_together

    def counting(blocks: list[tuple[torch.Tensor, object]]) -> list[torch.Tensor]:
        sizes.append(sum(ids.numel() for ids, _ in blocks))
        return whole(blocks)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "hidden_together", counting)
    requests = [
        request_for(f"{t}", [sample(t, reward=1.0)], baseline=ZERO, token_budget=30) for t in range(4)
    ]
    assert {report.outcome for report in run_steps(model, requests)} == {"made"}
    assert sizes == [26, 26]


def test_who_goes_together_is_a_matter_of_size_and_shape(request_for: For) -> None:
    def request(tokens: int, **fields: object) -> StepRequest:
        ids = (5,) * (tokens - 1)
        return request_for("r", [SampleInput(sample_id="s", prompt_ids=(1,), output_ids=ids)], **fields)

    small, large = request(TOGETHER_BELOW), request(TOGETHER_BELOW + 1)
    assert grouped([small, large, small]) == [[0, 2], [1]]
    assert grouped([small, request(9, lora=LoraSpec(rank=8)), small]) == [[0, 2], [1]]
    assert grouped([request(9, updates=2), small]) == [[0], [1]]
    assert [len(group) for group in grouped([small] * (TOGETHER_AT_MOST + 1))] == [TOGETHER_AT_MOST, 1]


def test_the_base_is_in_memory_once_however_many_tenants_there_are(
    model: PolicyModel, sample: Make, request_for: For
) -> None:
    base = {name: parameter for name, parameter in model.gpt.named_parameters() if "lora" not in name}
    before = {name: (parameter.data_ptr(), parameter.clone()) for name, parameter in base.items()}
    events: list[ProgressEvent] = []
    found = run_steps(
        model, [request_for(f"{t}", batch_of(sample, t), baseline=ZERO) for t in range(6)], events.append
    )
    assert {report.outcome for report in found} == {"made"}
    assert {event.run_id for event in events} == {str(tenant) for tenant in range(6)}
    for name, parameter in base.items():
        assert parameter.data_ptr() == before[name][0]
        assert torch.equal(parameter, before[name][1])
    del before
    gc.collect()
    weight = model.head
    same = [
        one
        for one in gc.get_objects()
        if type(one) in (torch.Tensor, torch.nn.Parameter) and one.shape == weight.shape
    ]
    assert {one.untyped_storage().data_ptr() for one in same} == {weight.untyped_storage().data_ptr()}
