"""What is compared, as data: how a policy is configured, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kernel.errors import InvalidInput

FLUSH_S = 20.0
"""Of every method that trains: a few complaints are enough for a step, as sessions come one at a time."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to personalise a policy. `config` overrides the platform's training configuration."""

    name: str
    says: str
    trains: bool = False
    memory: bool = False
    """Stated preferences stand in the prompt."""
    shadow: bool = False
    """The weights take over in quiet minutes what memory knows."""
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def still(self) -> bool:
        """Whether nothing goes on between sessions, so that they may as well be held side by side."""
        return not (self.trains or self.memory or self.shadow)


def _training(**config: Any) -> Mapping[str, Any]:
    return MappingProxyType({"flush_s": FLUSH_S, **config})


_ALL = (
    Method("frozen", "the bare base"),
    Method("memory", "preferences in the prompt, no training", memory=True),
    Method("binary", "rewards alone", trains=True, config=_training(method="binary")),
    Method("opd", "hints alone, over the whole vocabulary", trains=True, config=_training(method="opd")),
    Method("combined", "rewards and hints", trains=True, config=_training(method="combined")),
    Method(
        "top-k-select",
        "of up to three hints the one whose teacher agrees most, over the likeliest tokens",
        trains=True,
        config=_training(method="combined", opd_kind="top_k_select", hints=3),
    ),
    Method(
        "joined",
        "memory first, distilled by shadow rollouts, then dropped",
        trains=True,
        memory=True,
        shadow=True,
        config=_training(method="combined"),
    ),
)
METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _ALL})


def find_methods(names: Iterable[str]) -> list[Method]:
    """Return the methods of these names; raises InvalidInput for one that there is not."""
    found = []
    for name in names:
        if name not in METHODS:
            raise InvalidInput(
                f"there is no method {name!r}; there are {', '.join(METHODS)}", field="methods"
            )
        found.append(METHODS[name])
    return found
