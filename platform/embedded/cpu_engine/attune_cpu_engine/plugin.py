"""SGLang plugin: without an accelerator, memory that would be pinned is plain memory,
and attention is computed in a way that suits a processor.

SGLang's scheduler asks for pinned host memory in many places, whatever the device. Pinning needs a CUDA
driver; a plain allocation means the same to a server that never copies to a device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

FACTORIES = (
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "full",
    "ones",
    "ones_like",
    "rand",
    "randn",
    "tensor",
    "zeros",
    "zeros_like",
)


def activate() -> None:
    """Make torch's factories ignore `pin_memory` in this process, and `torch_native` attention ours;
    does nothing where an accelerator is present."""
    import torch

    if torch.accelerator.is_available():
        return
    for name in FACTORIES:
        factory = getattr(torch, name)
        if not hasattr(factory, "__wrapped__"):
            setattr(torch, name, _unpinned(factory))
    torch.Tensor.pin_memory = lambda self, *args, **kwargs: self
    torch.Tensor.is_pinned = lambda self, *args, **kwargs: False
    _register_attention()


def _register_attention() -> None:
    # under SGLang's own name: its checks of what goes together on a CPU ask for it
    from sglang.srt.layers.attention.attention_registry import register_attention_backend

    def create(runner: Any) -> Any:
        from attune_cpu_engine.attention import RowsOfOneMatrix

        return RowsOfOneMatrix(runner)

    register_attention_backend("torch_native")(create)


def _unpinned(factory: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(factory)
    def allocate(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)
        return factory(*args, **kwargs)

    return allocate
