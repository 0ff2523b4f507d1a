"""Identifiers."""

import datetime as dt
import uuid

import uuid_utils.compat


def uuid7() -> uuid.UUID:
    """Return a time-ordered UUID (RFC 9562, version 7): new rows land at the end of an index."""
    return uuid_utils.compat.uuid7()


def first_id_at(moment: dt.datetime) -> uuid.UUID:
    """Return the smallest id (version 7) that a row made at `moment` can have: ids are an index by time."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def tail(row_id: object) -> str:
    """Return the last eight digits of an id, by which people tell rows apart: the first ones are the time."""
    return f"…{str(row_id)[-8:]}"


def made_at(row_id: uuid.UUID) -> dt.datetime:
    """Return when a row was made, to the millisecond, by its id of version 7."""
    return dt.datetime.fromtimestamp((row_id.int >> 80) / 1000, dt.UTC)
