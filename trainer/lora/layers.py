"""PEFT's LoRA layer over Megatron's column- and row-parallel linears.

PEFT's own Megatron support does not work with this megatron-core, so two small layers are registered through
`LoraConfig._register_custom_module`. PEFT marks that call experimental: the version is pinned and a test
holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora.layer import LoraLayer
from torch import nn

from trainer.contracts import LoraSpec
from trainer.lora.product import Layout, adapted

ADAPTER = "default"
MEGATRON_TARGETS = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2")


@dataclass(frozen=True, slots=True)
class AdapterPair:
    """The two matrices on one Megatron linear, as this rank holds them (float32).

    A [rank, in] is cut by columns where `row_parallel`, B [out, rank] by rows where not; the other is whole.
    """

    a: nn.Parameter
    b: nn.Parameter
    row_parallel: bool


@dataclass(frozen=True, slots=True)
class Wearer:
    """Tokens [start, stop) of a pass that run under an adapter of their own, by layer name."""

    start: int
    stop: int
    pairs: Mapping[str, AdapterPair]


class _MegatronLora(nn.Module, LoraLayer):
    base_layer: Any
    lora_A: Any  # noqa: N815 - PEFT's name
    lora_B: Any  # noqa: N815 - PEFT's name
    get_base_layer: Any
    update_layer: Any
    scaling: dict[str, float]
    tp_group: Any
    row_parallel: bool
    crowd: list[tuple[slice, nn.Parameter, nn.Parameter]] | None
    _disable_adapters: Any

    def __init__(
        self,
        base_layer: nn.Module,
        adapter_name: str,
        config: LoraConfig,
        r: int = 0,
        lora_alpha: float = 1,
        **kwargs: Any,
    ) -> None:
        nn.Module.__init__(self)
        LoraLayer.__init__(self, base_layer)
        base: Any = self.get_base_layer()
        self.tp_group = base.tp_group
        self.crowd = None
        self.measure(base)
        self._active_adapter = adapter_name
        self.update_layer(adapter_name, r, lora_alpha, config=config)

    def measure(self, base: Any) -> None:
        """Sets `in_features` and `out_features` of this rank."""
        raise NotImplementedError

    def forward(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        base: Any = self.base_layer
        if self.disable_adapters:
            return base(x, *args, **kwargs)
        crowd = self.crowd
        if crowd is None:
            crowd = [(slice(0, x.size(0)), self.lora_A[ADAPTER].weight, self.lora_B[ADAPTER].weight)]
        width = x[0].numel() // x.size(-1)
        layout = Layout(
            rows=tuple(slice(part.start * width, part.stop * width) for part, _, _ in crowd),
            scale=self.scaling[ADAPTER],
            row_parallel=self.row_parallel,
            group=self.tp_group if self.tp_group.size() > 1 else None,
        )
        apart = base.bias if base.skip_bias_add else None
        bias = None if base.skip_bias_add else base.bias
        y = adapted(
            x.reshape(-1, x.size(-1)),
            base.weight,
            bias,
            layout,
            [(pair_a, pair_b) for _, pair_a, pair_b in crowd],
        )
        return y.view(*x.shape[:-1], y.size(-1)), apart


class ColumnLora(_MegatronLora):
    """A whole, B cut by rows: the exchange is in the backward pass, of `rank` numbers a token."""

    row_parallel = False

    def measure(self, base: Any) -> None:
        self.in_features, self.out_features = base.input_size, base.output_size_per_partition


class RowLora(_MegatronLora):
    """A cut by columns, B whole: the exchange is in the forward pass, of `rank` numbers a token."""

    row_parallel = True

    def measure(self, base: Any) -> None:
        self.in_features, self.out_features = base.input_size_per_partition, base.output_size


def attach(gpt: nn.Module, spec: LoraSpec) -> dict[str, AdapterPair]:
    """Puts an adapter of this shape on every target linear, in place of any other;
    returns its pairs by layer name.

    The parameters are float32 whatever the base is: Adam's small updates would be lost in bfloat16.
    """
    _detach(gpt)
    config = LoraConfig(
        r=spec.rank,
        lora_alpha=spec.alpha,
        target_modules=list(MEGATRON_TARGETS),
        lora_dropout=0.0,
        bias="none",
        init_lora_weights=False,
    )
    config._register_custom_module({ColumnParallelLinear: ColumnLora, RowParallelLinear: RowLora})  # noqa: SLF001
    inject_adapter_in_model(config, gpt, adapter_name=ADAPTER)
    pairs = {}
    for name, module in gpt.named_modules():
        if isinstance(module, _MegatronLora):
            module.lora_A.float()
            module.lora_B.float()
            a, b = module.lora_A[ADAPTER].weight, module.lora_B[ADAPTER].weight
            a.requires_grad_(requires_grad=True)
            b.requires_grad_(requires_grad=True)
            pairs[name] = AdapterPair(a=a, b=b, row_parallel=isinstance(module, RowLora))
    return pairs


def set_enabled(gpt: nn.Module, *, on: bool) -> None:
    """Switches every adapter layer on or off, leaving the parameters as they are."""
    for module in gpt.modules():
        if isinstance(module, _MegatronLora):
            module._disable_adapters = not on  # noqa: SLF001 - enable_adapters() would also touch requires_grad


@contextmanager
def dressed(gpt: nn.Module, wearers: Sequence[Wearer]) -> Iterator[None]:
    """Inside, each stretch of tokens (the first dimension of every layer's input) runs
    under its wearer's adapter, instead of the model's own.
    The stretches follow one another and cover all tokens."""
    layers = {name: module for name, module in gpt.named_modules() if isinstance(module, _MegatronLora)}
    for name, layer in layers.items():
        pairs = [(slice(one.start, one.stop), one.pairs[name]) for one in wearers]
        layer.crowd = [(part, pair.a, pair.b) for part, pair in pairs]
    try:
        yield
    finally:
        for layer in layers.values():
            layer.crowd = None


def _detach(gpt: nn.Module) -> None:
    for parent in list(gpt.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, _MegatronLora):
                setattr(parent, name, child.get_base_layer())
    if hasattr(gpt, "peft_config"):
        del gpt.peft_config
