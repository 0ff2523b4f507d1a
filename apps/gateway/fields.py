"""Read fields of a JSON object, refusing what is not of the stated type or outside the stated bounds.

Every function returns None for an absent or null field and raises InvalidInput naming the field.
"""

from collections.abc import Mapping
from typing import Any

from apps.accounts.names import is_name
from kernel.errors import InvalidInput

Body = Mapping[str, Any]
_SHOWN = 100  # characters of a name that a client made up


def wrong(field: str, must: str, *, code: str = "invalid_value") -> InvalidInput:
    """Return the error that says what `field` must be."""
    return InvalidInput(f"`{field}` must be {must}.", field=field, code=code)


def unsupported(field: str, what: str) -> InvalidInput:
    """Return the error that says that `what` (in `field`) is not served."""
    return InvalidInput(f"{what} is not supported.", field=field, code="unsupported_value")


def unknown(where: str, name: str) -> InvalidInput:
    """Return the error that names a parameter which nobody knows, as far as it is fit to be shown."""
    shown = where + name.encode("ascii", "replace").decode()[:_SHOWN]
    return InvalidInput(f"Unknown parameter: `{shown}`.", field=shown, code="unknown_parameter")


def number(body: Body, name: str, low: float, high: float) -> float | None:
    """Return a number within [low, high]."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise wrong(name, f"a number from {low:g} to {high:g}")
    return float(value)


def integer(body: Body, name: str, low: int, high: int) -> int | None:
    """Return a whole number within [low, high]."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise wrong(name, f"a whole number from {low} to {high}")
    return value


def flag(body: Body, name: str) -> bool | None:
    """Return true or false."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise wrong(name, "true or false")
    return value


def text(body: Body, name: str, *, longest: int) -> str | None:
    """Return a string of 1 to `longest` printable ASCII characters: it may go into a header or a log."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not is_name(value, longest=longest):
        raise wrong(name, f"a string of 1 to {longest} printable ASCII characters")
    return value


def mapping(value: Any, field: str) -> Body:
    """Return a JSON object; here null and absence are errors too."""
    if not isinstance(value, dict):
        raise wrong(field, "an object")
    return value


def only(body: Body, field: str, known: frozenset[str]) -> None:
    """Refuse keys of an inner object that are not known. Null ones are no request for anything."""
    for name, value in body.items():
        if name not in known and value not in (None, [], {}):
            raise unknown(f"{field}.", name)
