"""Refusals that only this room knows."""

from kernel.errors import AttuneError


class IdempotencyKeyReused(AttuneError):
    """The idempotency key already stands for another request body."""

    code = "idempotency_key_reused"
    status = 422  # not 409: clients repeat a 409 by themselves, and this one never mends
