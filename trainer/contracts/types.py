"""Types that several messages share."""

from __future__ import annotations

from typing import Annotated, Literal

from trainer.codec import Bounds

TokenId = Annotated[int, Bounds(0, 2**31 - 1)]
Ids = Annotated[tuple[TokenId, ...], Bounds(1, 1_048_576)]
Logprob = Annotated[float, Bounds(-1e4, 1e-3)]
Name = Annotated[str, Bounds(1, 4096)]
Sha256 = Annotated[str, Bounds(64, 64)]
Fraction = Annotated[float, Bounds(0, 1)]
Seconds = Annotated[float, Bounds(0, 1e9)]


Outcome = Literal["made", "no_op", "skipped", "refused", "failed"]
"""made: a version was written. no_op: nothing to learn or lr 0. skipped:
too off-policy (ESS). refused: a bound was passed (not finite, norm, KL); the samples deserve a look. failed:
the surroundings (disk, parent's files); the same request may be tried again.
Only `made` leaves anything on the disk."""


Part = Literal["rl", "opd"]
"""rl: the reward part of the loss. opd: the distillation of the hinted teacher."""
