"""Names of two torchvision operators, for a torchvision whose compiled half does not load.

transformers imports torchvision, and torchvision describes its operators `nms` and `qnms` to torch while it
is imported. The released wheel's compiled half is linked against CUDA; beside a torch built for the CPU it
does not load, the two operators do not exist and the import fails. Naming them is enough: calling one still
fails.
"""

from __future__ import annotations

import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from typing import Any

# torchvision imports this right after it has tried to load its compiled half:
# what is missing then stays missing.
AFTER_LOADING = "torchvision._meta_registrations"
OPERATORS = ("nms", "qnms")
SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

_libraries: list[Any] = []  # torch forgets a definition when its library object is collected


class _NameOperators(importlib.abc.MetaPathFinder):
    """Finds nothing; acts once, at the moment torchvision is about to describe its operators."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        del path, target
        if fullname == AFTER_LOADING:
            sys.meta_path.remove(self)
            _define_missing()
        return None


def install() -> None:
    """Put the hook in place; costs nothing until torchvision is imported."""
    if not any(isinstance(finder, _NameOperators) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NameOperators())


def _define_missing() -> None:
    import torch

    missing = [name for name in OPERATORS if not hasattr(torch.ops.torchvision, name)]
    if missing:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in missing:
            library.define(name + SIGNATURE)
        _libraries.append(library)
