"""Stand-in for SGLang's compiled kernels on a machine without an accelerator.

SGLang imports names from `sgl_kernel` at start, whatever the device. On its CPU path with the `torch_native`
backends none of them is called; one that is called after all says so instead of computing something wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise NotImplementedError(
            f"sgl_kernel.{name} was called, but this environment has no compiled SGLang kernels"
        )

    return missing
