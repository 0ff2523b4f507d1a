"""What a check of a version measured, in people's words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.adapters.publishing import HELD_OUT

CHECKS = {
    "preflight": "its files are whole and fit the base",
    "probe": "engines load it and answer with it",
    HELD_OUT: "its replies to questions that it never learned from, without being told what is wanted",
}
"""What each check looks at, by its name."""
_COUNTED = {"on_topic": "On topic", "looping": "Repeat themselves", "empty": "Empty"}
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Said:
    """One figure: what it is of, and how much. Both are plain text, of which nothing is markup."""

    label: str
    value: str


def in_words(check_name: str, detail: Any) -> list[Said]:
    """Return what a gate result's detail says. What is missing in it is left out, and so is what is nested.

    Figures of which nobody wrote here what they mean stand last, by their names.
    """
    if not isinstance(detail, Mapping):
        return []
    figures = dict(detail)
    reason = figures.pop("reason", None)
    found = list(_held_out(figures)) if check_name == HELD_OUT else []
    found += [
        Said(name.replace("_", " ").capitalize(), _number(value))
        for name, value in figures.items()
        if not isinstance(value, dict | list) and value is not None and value != ""
    ]
    if reason:
        found.append(Said("Why it did not pass", str(reason)[:_LONGEST]))
    return found


def _held_out(figures: dict[str, Any]) -> Iterator[Said]:
    """Say what `Measured.to_json` gave, and take it out of the figures."""
    of = _take(figures, "of")
    passes, told, told_of = (_take(figures, name) for name in ("passes", "told_passes", "told_of"))
    if passes is not None:
        teacher = "" if told is None else f" (the told teacher: {_share(told, told_of)})"
        yield Said("Pass without being told", f"{_share(passes, of)} held-out replies{teacher}")
    for name, label in _COUNTED.items():
        if (count := _take(figures, name)) is not None:
            yield Said(label, _share(count, of))
    if (tokens := _take(figures, "mean_tokens")) is not None:
        yield Said("Length", f"{_number(tokens)} tokens on average")
    if (closeness := _take(figures, "closeness")) is not None:
        yield Said("Closeness to the teacher", f"{_number(closeness)} nats a token, 0 is closest")
    if (gap := _take(figures, "k3")) is not None:
        yield Said("Distance from the base (k3)", f"{_number(gap)} nats a token")
    general, general_of = (_take(figures, name) for name in ("general", "general_of"))
    if general is not None:
        yield Said("General knowledge", f"{_share(general, general_of)} statements")


def _take(figures: dict[str, Any], name: str) -> float | None:
    """Take a number out; what is none stays, to be shown as it is."""
    value = figures.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    del figures[name]
    return value


def _share(count: float, of: float | None) -> str:
    return _number(count) if of is None else f"{_number(count)} of {_number(of)}"


def _number(value: Any) -> str:
    """Return a whole number with its thousands apart, any other to three digits, anything else as it is, cut."""
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.3g}".replace("-", "\u2212")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.0f}".replace(",", "\u202f").replace("-", "\u2212")
    return str(value)[:_LONGEST]
