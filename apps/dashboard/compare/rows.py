"""Lines of a comparison: a label, what it is of the one, what of the other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.dashboard.templatetags.pages import cut, number

Number = float | int | None
_MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table. What is no SafeString is escaped."""

    label: str
    one: str
    other: str
    change: str = ""
    """What the other is beside the one, in a few words."""

    @property
    def differs(self) -> bool:
        """Whether both say something else."""
        return self.one != self.other


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Line]:
    """Return the fields that differ, by name; one that is missing says so."""
    names = sorted({*one, *other})
    return [
        Line(name, _value(one, name), _value(other, name))
        for name in names
        if (name in one) != (name in other) or one.get(name) != other.get(name)
    ]


def measured(label: str, one: Number, other: Number, *, scale: float = 1.0, unit: str = "") -> Line:
    """Return a line of two numbers, with their difference where both are known."""
    first, second = (None if value is None else value * scale for value in (one, other))
    change = "" if first is None or second is None or first == second else signed(second - first)
    return Line(label, _number(first, unit), _number(second, unit), change)


def kept(lines: Iterable[Line]) -> Sequence[Line]:
    """Return the lines that say something of either."""
    return [line for line in lines if (line.one, line.other) != ("-", "-")]


def signed(value: float) -> str:
    """Return a difference with its sign, to three digits."""
    return f"{'+' if value > 0 else _MINUS if value < 0 else '±'}{abs(value):.3g}"


def counted(change: int) -> str:
    """Return a difference of two counts with its sign, whole."""
    return f"{change:+d}".replace("-", _MINUS)


def plain(value: float) -> str:
    """Return a number to three digits, its minus as long as a plus."""
    return f"{value:.3g}".replace("-", _MINUS)


def numbers_in(metrics: Mapping[str, Any], name: str) -> float | None:
    """Return a measure, or None where it is not there or no number."""
    value = metrics.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    said = f"{value:.0f}" if value == int(value) and abs(value) < 1e6 else f"{value:.4g}"
    return f"{said.replace('-', _MINUS)}{unit and ' '}{unit}"


def _value(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return "-"
    value = values[name]
    return "none" if value is None else cut(number(value), 200)
