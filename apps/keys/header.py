"""Read a key from the `Authorization` header. Nothing else is ever looked at for one."""

import re
from dataclasses import dataclass, field

from kernel.errors import Unauthenticated

_BEARER = re.compile(r"\s*bearer\s+(\S+)\s*", re.IGNORECASE)
_KEY = re.compile(r"at-([A-Za-z0-9]{6,24})-([A-Za-z0-9_\-]{16,200})")

NOT_VALID = "The API key is not valid. Keys are made on the dashboard's page Keys."
"""The one thing that is said of a key of the wrong form, of none that exists and of a wrong secret."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The two halves of a key. The secret half is left out of its `repr`."""

    public_id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The key as its owner sends it."""
        return f"at-{self.public_id}-{self.secret}"


def parse_authorization(header: str | None) -> Credential:
    """Return the key in `Bearer at-<public id>-<secret>` (the scheme in any case).

    Raises Unauthenticated for everything else, without repeating it.
    """
    if header is None or not header.strip():
        raise Unauthenticated(
            "No API key: send it in the header `Authorization: Bearer <key>`. Keys are made on the dashboard's page Keys.",
            code="invalid_api_key",
        )
    bearer = _BEARER.fullmatch(header)
    key = _KEY.fullmatch(bearer[1]) if bearer else None
    if key is None:
        raise Unauthenticated(NOT_VALID, code="invalid_api_key")
    return Credential(key[1], key[2])
