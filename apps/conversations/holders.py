"""Which process answers a pending turn, and whether it still lives.

A gateway says every `BEAT_S` that it is there. Its turns are not tied to its connections, which come and go
with the database: a turn takes the holder that its connection names when it is admitted.
"""

import uuid
from typing import Final

from kernel.calls import Plan, call

BEAT_S: Final = 2.0
LOST_AFTER_S: Final = 12.0
"""A holder that was not seen for so long is presumed gone.

Well above what a busy event loop or a database's restart takes.
"""
NAMED_BY: Final = "attune.holder"
"""The setting of a connection that says who holds the turns that are admitted over it."""


def beating(holder: uuid.UUID) -> Plan[None]:
    """Say that this holder is there."""
    yield call("attune_beat", {"holder": holder})


def ending_lost(*, tenant_id: uuid.UUID, turn_id: uuid.UUID) -> Plan[bool]:
    """Mark a pending turn as failed if its holder is gone; returns whether it was.

    It is a presumption: the holder may still end the turn itself, until another takes its place. A holder
    without a row (a restored database) is given one, as of now: it may live, and then says so.
    """
    answer = yield call(
        "attune_end_lost", {"tenant": tenant_id, "turn": turn_id, "lost_after_s": LOST_AFTER_S}
    )
    lost: bool = answer["lost"]
    return lost
