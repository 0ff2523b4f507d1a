"""An adapter's values and its optimiser's: made from a seed, taken from files, given back to files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import torch

from trainer.contracts import TARGET_MODULES, LoraSpec, StepConfig
from trainer.lora.layers import AdapterPair
from trainer.lora.layout import LayoutError, Tensors, from_peft, sliced, to_peft, whole, whole_sizes
from trainer.model.policy import PolicyModel

Values = dict[str, AdapterPair]
"""An adapter that is not the model's own, by layer name."""

MOMENTS = ("exp_avg", "exp_avg_sq")


class Adapter:
    """The adapter on a model, with an AdamW over its float32 parameters. One at a time for each model."""

    def __init__(self, model: PolicyModel, spec: LoraSpec) -> None:
        """Takes the model's adapter over; call `initialise` or `load` before using its values."""
        self.model = model
        self.spec = spec
        self.pairs: dict[str, AdapterPair] = model.adapter(spec)
        self.step = 0
        self._moments: dict[str, Tensors] = {}

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """All of them, in one fixed order."""
        return [parameter for pair in self.pairs.values() for parameter in (pair.a, pair.b)]

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """A as PEFT does it (Kaiming uniform, a = sqrt 5), B = 0; each layer's from its own generator.

        So the values depend on the seed and the layer's name only: not on ranks, order or what ran before.
        """
        for name, pair in self.pairs.items():
            inputs, outputs = whole_sizes(name, self.model.shape)
            digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
            bound = 1 / math.sqrt(inputs)
            a = torch.empty(self.spec.rank, inputs).uniform_(-bound, bound, generator=generator)
            self._put(name, pair, a, torch.zeros(outputs, self.spec.rank))
        self.step = 0
        self._moments = {}

    @torch.no_grad()
    def load(self, weights: Tensors, optimizer: Tensors | None) -> None:
        """Values from PEFT's tensors, and the optimiser's from `optimizer_tensors`; None: a fresh optimiser.

        Raises `LayoutError` where they do not fit the model and the shape.
        """
        whole_pairs = from_peft(weights, list(self.pairs), self.model.shape, self.spec.rank)
        for name, pair in self.pairs.items():
            self._put(name, pair, *whole_pairs[name])
        self.step = 0
        self._moments = {}
        if optimizer is not None:
            self._load_optimizer(dict(optimizer))

    def optimizer(self, config: StepConfig) -> torch.optim.AdamW:
        """AdamW over the parameters, continuing where the loaded state stood."""
        adamw = torch.optim.AdamW(
            self.parameters,
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            eps=config.adam_eps,
            weight_decay=config.weight_decay,
            fused=True,
        )
        for name, parameter in self._named():
            if name in self._moments:
                adamw.state[parameter] = {
                    "step": torch.tensor(float(self.step), device=parameter.device),
                    **{moment: self._moments[name][moment].clone() for moment in MOMENTS},
                }
        return adamw

    def adopt(self, adamw: torch.optim.AdamW) -> None:
        """Takes the optimiser's state over after its steps."""
        self._moments = {}
        for name, parameter in self._named():
            state: Any = adamw.state.get(parameter)
            if state:
                self.step = int(state["step"])
                self._moments[name] = {moment: state[moment] for moment in MOMENTS}

    def take_off(self) -> Values:
        """A copy of the values, and room for gradients, that does not change with the model;
        the optimiser's state is let go: it comes back with `load`."""
        self._moments = {}
        return {
            name: AdapterPair(
                a=torch.nn.Parameter(pair.a.detach().clone()),
                b=torch.nn.Parameter(pair.b.detach().clone()),
                row_parallel=pair.row_parallel,
            )
            for name, pair in self.pairs.items()
        }

    def take_gradient(self, values: Values) -> None:
        """The gradients of what was taken off, moved onto the parameters."""
        for name, pair in self.pairs.items():
            other = values[name]
            pair.a.grad, pair.b.grad = other.a.grad, other.b.grad
            other.a.grad = other.b.grad = None

    def peft_tensors(self) -> Tensors:
        """Whole matrices by PEFT's names, on the host; all ranks must call."""
        pairs = {
            name: tuple(x.detach().cpu() for x in whole(name, pair.a, pair.b, self.model.ranks))
            for name, pair in self.pairs.items()
        }
        return to_peft({name: (a, b) for name, (a, b) in pairs.items()}, self.model.shape)

    def optimizer_tensors(self) -> Tensors:
        """AdamW's moments by fused layer, whole, and `step`, on the host; all ranks must call."""
        tensors: Tensors = {"step": torch.tensor([self.step], dtype=torch.int64)}
        if not self._moments:
            return tensors
        for name in self.pairs:
            for moment in MOMENTS:
                a, b = (self._moments[f"{name}.lora_{side}"][moment] for side in "AB")
                a, b = whole(name, a, b, self.model.ranks)
                tensors[f"{name}.lora_A.{moment}"] = a.cpu().clone().contiguous()
                tensors[f"{name}.lora_B.{moment}"] = b.cpu().clone().contiguous()
        return tensors

    def _load_optimizer(self, tensors: Tensors) -> None:
        if "step" not in tensors:
            raise LayoutError("the optimiser's state has no step")
        self.step = int(tensors.pop("step").item())
        if not tensors:
            return
        for name, pair in self.pairs.items():
            for moment in MOMENTS:
                try:
                    a, b = (tensors.pop(f"{name}.lora_{side}.{moment}") for side in "AB")
                except KeyError as error:
                    raise LayoutError(f"the optimiser's state has no {error}") from error
                a, b = sliced(name, a, b, self.model.ranks)
                for side, tensor, like in (("A", a, pair.a), ("B", b, pair.b)):
                    if tensor.shape != like.shape:
                        raise LayoutError(f"the optimiser's {moment} of {name}.lora_{side} does not fit")
                    kept = self._moments.setdefault(f"{name}.lora_{side}", {})
                    kept[moment] = tensor.to(like.device, torch.float32).contiguous()
        if tensors:
            raise LayoutError(f"the optimiser's state has {min(tensors)}, which belongs to no layer")

    def _put(self, name: str, pair: AdapterPair, a: torch.Tensor, b: torch.Tensor) -> None:
        a, b = sliced(name, a, b, self.model.ranks)
        pair.a.copy_(a)
        pair.b.copy_(b)
        pair.a.grad = pair.b.grad = None

    def _named(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        for name, pair in self.pairs.items():
            yield f"{name}.lora_A", pair.a
            yield f"{name}.lora_B", pair.b


def peft_config(spec: LoraSpec, base_model: str) -> dict[str, Any]:
    """PEFT's `adapter_config.json` as PEFT writes it, in an order that never changes."""
    from peft import LoraConfig

    config = LoraConfig(
        r=spec.rank,
        lora_alpha=int(spec.alpha) if spec.alpha.is_integer() else spec.alpha,
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
        base_model_name_or_path=base_model,
        inference_mode=True,
        target_modules=list(TARGET_MODULES),
    ).to_dict()
    return {key: sorted(value) if isinstance(value, set) else value for key, value in sorted(config.items())}
