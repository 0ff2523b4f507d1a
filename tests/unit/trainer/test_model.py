"""The trainer's arithmetic against transformers' and PEFT's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from tests.tiny_model import build_tiny_model
from trainer.artefact import read_parent, write_artefact
from trainer.contracts import LoraSpec
from trainer.errors import UnsupportedModelError
from trainer.lora.layout import LayoutError
from trainer.lora.state import Adapter, peft_config
from trainer.model.head import Teacher, score
from trainer.model.parallel import Ranks
from trainer.model.policy import PolicyModel
from trainer.model.shape import ModelShape

SPEC = LoraSpec(rank=4, alpha=8.0)
IDS = torch.randint(0, 320, (3, 17), generator=torch.Generator().manual_seed(0))


def logits(model: PolicyModel) -> torch.Tensor:
    with torch.no_grad():
        return (model.hidden(IDS) @ model.head.T).transpose(0, 1)


def filled(model: PolicyModel, seed: int = 1) -> Adapter:
    """An adapter whose B is not zero."""
    adapter = Adapter(model, SPEC)
    adapter.initialise(seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for pair in adapter.pairs.values():
            pair.b.copy_(0.1 * torch.randn(pair.b.shape, generator=generator))
    return adapter


def write(adapter: Adapter, directory: Path) -> Path:
    write_artefact(
        directory,
        weights=adapter.peft_tensors(),
        optimizer=adapter.optimizer_tensors(),
        config=peft_config(adapter.spec, "tiny"),
        step=0,
        parent_hash=None,
        probe=(),
        about={},
    )
    return directory


@pytest.mark.parametrize(
    ("family", "tied"), [("llama", True), ("llama", False), ("qwen2", True), ("qwen3", False)]
)
def test_logits_and_exported_adapters_equal_transformers(
    family: str, tied: bool, tmp_path: Path, ranks: Ranks
) -> None:
    directory = build_tiny_model(tmp_path / family, family=family, tied=tied)
    theirs = AutoModelForCausalLM.from_pretrained(directory)
    ours = PolicyModel(directory, ranks=ranks, dtype=torch.float32)
    with torch.no_grad():
        assert (logits(ours) - theirs(IDS).logits).abs().max().item() <= 1e-4
    assert ours.shape.parameters == sum(p.numel() for p in theirs.parameters())
    adapter = filled(ours)
    bare = logits_bare(ours)
    adapted = logits(ours)
    assert (adapted - bare).abs().max().item() > 0.1
    with torch.no_grad():
        peft = PeftModel.from_pretrained(theirs, write(adapter, tmp_path / "adapter"))
        assert (adapted - peft(IDS).logits).abs().max().item() <= 1e-4


def logits_bare(model: PolicyModel) -> torch.Tensor:
    with model.bare():
        return logits(model)


def test_sharded_weights_read_the_same(
    tiny_directory: Path, tmp_path: Path, model: PolicyModel, ranks: Ranks
) -> None:
    AutoModelForCausalLM.from_pretrained(tiny_directory).save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    sharded = PolicyModel(tmp_path, ranks=ranks, dtype=torch.float32)
    assert torch.equal(logits_bare(sharded), logits_bare(model))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2' is none of"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "rope scaling 'llama3'"),
        (
            {"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.0}},
            "rope scaling 'linear'",
        ),
        ({"hidden_act": "gelu"}, "activation 'gelu'"),
        ({"attention_bias": True}, "biases"),
        ({"use_sliding_window": True}, "sliding window"),
        ({"quantization_config": {}}, "quantised"),
    ],
)
def test_a_shape_that_would_be_wrong_is_refused(
    tiny_directory: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    config = json.loads((tiny_directory / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(UnsupportedModelError, match=message):
        ModelShape.from_directory(tmp_path)


def test_a_missing_tensor_is_refused_by_name(tiny_directory: Path, tmp_path: Path, ranks: Ranks) -> None:
    config = json.loads((tiny_directory / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    (tmp_path / "model.safetensors").write_bytes((tiny_directory / "model.safetensors").read_bytes())
    with pytest.raises(UnsupportedModelError, match=r"model.layers.2.input_layernorm.weight"):
        PolicyModel(tmp_path, ranks=ranks, dtype=torch.float32)


def test_a_fresh_adapter_changes_nothing_and_depends_on_its_seed_alone(model: PolicyModel) -> None:
    adapter = Adapter(model, SPEC)
    adapter.initialise(7)
    assert torch.equal(logits(model), logits_bare(model))
    first = adapter.peft_tensors()
    torch.manual_seed(123)
    filled(model, seed=3)
    adapter.initialise(7)
    assert all(torch.equal(first[name], tensor) for name, tensor in adapter.peft_tensors().items())
    adapter.initialise(8)
    assert not torch.equal(first[min(first)], adapter.peft_tensors()[min(first)])


def test_what_is_written_reads_back_bit_for_bit(model: PolicyModel, tmp_path: Path) -> None:
    adapter = filled(model)
    before = adapter.peft_tensors()
    parent = read_parent(write(adapter, tmp_path / "adapter"), None)
    assert parent.spec == SPEC
    adapter.initialise(9)
    adapter.load(parent.weights, parent.optimizer)
    assert all(torch.equal(before[name], tensor) for name, tensor in adapter.peft_tensors().items())


def test_an_adapter_that_does_not_fit_is_refused(model: PolicyModel) -> None:
    adapter = filled(model)
    tensors = adapter.peft_tensors()
    query = next(name for name in tensors if "q_proj.lora_A" in name)
    for change in ({query: tensors[query] + 1}, {query: tensors[query][:2]}, {"extra": tensors[query]}):
        with pytest.raises(LayoutError):
            adapter.load({**tensors, **change}, None)
    with pytest.raises(LayoutError, match="missing"):
        adapter.load({name: tensor for name, tensor in tensors.items() if name != query}, None)


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_scores_and_their_gradients_equal_a_whole_log_softmax(model: PolicyModel, chunk: int) -> None:
    generator = torch.Generator().manual_seed(5)
    hidden = torch.randn(20, 64, generator=generator)
    teachers = torch.randn(2, 20, 64, generator=generator)
    share = torch.tensor([[0.5, 1.0], [0.5, 0.0]]).repeat(1, 10)
    tokens = torch.randint(0, 320, (20,), generator=generator)
    heat = torch.linspace(0.5, 1.5, 20)
    weights = torch.randn(2, 20, generator=generator)

    def reference(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logp = (states @ model.head.T / heat[:, None]).log_softmax(1)
        taught = ((teachers @ model.head.T / heat[:, None]).softmax(2) * share[..., None]).sum(0).log()
        return logp.gather(1, tokens[:, None])[:, 0], (logp.exp() * (logp - taught)).sum(1)

    ours, theirs = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    found = score(model, ours, tokens, heat, chunk=chunk, teacher=Teacher(teachers, share))
    logprob, kl = reference(theirs)
    assert found.kl is not None
    assert torch.allclose(found.logprob, logprob, atol=1e-5)
    assert torch.allclose(found.kl, kl, atol=1e-5)
    (found.logprob * weights[0] + found.kl * weights[1]).sum().backward()
    (logprob * weights[0] + kl * weights[1]).sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-5)
