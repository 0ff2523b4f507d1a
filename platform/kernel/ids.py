"""Identifiers."""

import uuid

import uuid_utils.compat


def uuid7() -> uuid.UUID:
    """Return a time-ordered UUID (RFC 9562, version 7): new rows land at the end of an index."""
    return uuid_utils.compat.uuid7()
