"""Typed, bounded dataclasses that travel as JSON: the one way in and out of the trainer's process.

A field's type says what it may hold and `Annotated[..., Bounds(low, high)]` within which limits. Both are
checked when the object is made, wherever it is made, so a value out of bounds never gets as far as a tensor.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from dataclasses import dataclass
from typing import Any, Self


class ContractError(ValueError):
    """A value is of the wrong type or out of its bounds; the message names the field."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Inclusive limits of a number, or of the length of a string, tuple or mapping. Infinite means none."""

    low: float = -math.inf
    high: float = math.inf

    def check(self, size: float, where: str, what: str) -> None:
        if not self.low <= size <= self.high:
            raise ContractError(f"{where}: {what} {size:g} is outside [{self.low:g}, {self.high:g}]")


class Contract:
    """Base of every message. Construction converts lists to tuples and raises
    `ContractError` on bad values."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, hint in _hints(type(self)).items():
            object.__setattr__(
                self, name, _decode(getattr(self, name), hint, f"{type(self).__name__}.{name}")
            )
        self.rules()

    def rules(self) -> None:
        """What must hold between fields; raise `ContractError` where it does not."""

    def to_json(self) -> dict[str, Any]:
        """A plain dict that `json.dumps` takes; `from_json` gives the equal object back."""
        return {name: _encode(getattr(self, name)) for name in _hints(type(self))}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The object that `to_json` described. Unknown and missing fields are errors that name the field."""
        if not isinstance(data, dict):
            raise ContractError(f"{cls.__name__}: expected an object, got {type(data).__name__}")
        unknown = sorted(set(data) - set(_hints(cls)))
        if unknown:
            raise ContractError(f"{cls.__name__}: unknown field {unknown[0]!r}")
        try:
            return cls(**data)
        except TypeError as error:
            raise ContractError(f"{cls.__name__}: {error}") from error


_HINTS: dict[type, dict[str, Any]] = {}


def _hints(cls: type) -> dict[str, Any]:
    """Field names and types of a contract, read once per class: a batch holds many thousands of values."""
    if cls not in _HINTS:
        hints = typing.get_type_hints(cls, include_extras=True)
        _HINTS[cls] = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    return _HINTS[cls]


def _encode(value: object) -> Any:
    if isinstance(value, Contract):
        return value.to_json()
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return value


def _decode(value: Any, hint: Any, where: str) -> Any:
    bounds: Bounds | None = None
    if typing.get_origin(hint) is typing.Annotated:
        hint, bounds = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        inner = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        return _decode(value, typing.Annotated[inner, bounds] if bounds else inner, where)
    if origin is typing.Literal:
        if value not in typing.get_args(hint):
            raise ContractError(
                f"{where}: {value!r} is none of {', '.join(map(repr, typing.get_args(hint)))}"
            )
        return value
    if origin in (tuple, dict):
        return _decode_many(value, hint, bounds, where)
    if isinstance(hint, type) and issubclass(hint, Contract):
        return value if isinstance(value, hint) else hint.from_json(value)
    return _decode_scalar(value, hint, bounds, where)


def _decode_many(value: Any, hint: Any, bounds: Bounds | None, where: str) -> Any:
    if typing.get_origin(hint) is dict:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise ContractError(f"{where}: expected an object")
        item_hint = typing.get_args(hint)[1]
        return {key: _decode(item, item_hint, f"{where}[{key!r}]") for key, item in value.items()}
    if not isinstance(value, list | tuple):
        raise ContractError(f"{where}: expected a list")
    if bounds:
        bounds.check(len(value), where, "length")
    item_hint = typing.get_args(hint)[0]
    return tuple(_decode(item, item_hint, f"{where}[{index}]") for index, item in enumerate(value))


def _decode_scalar(value: Any, hint: Any, bounds: Bounds | None, where: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not hint:
        raise ContractError(f"{where}: expected {hint.__name__}, got {type(value).__name__}")
    if hint is float and not math.isfinite(value):
        raise ContractError(f"{where}: {value} is not finite")
    if bounds:
        bounds.check(len(value) if hint is str else value, where, "length" if hint is str else "value")
    return value
