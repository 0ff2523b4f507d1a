"""Sequences into micro-batches: what shares its beginning is read once, like lengths go together.

A turn's prompt is the one before it with its reply and what was added, id for id. Under causal attention the
states of a beginning do not depend on what follows, so a whole session is one sequence: every turn's
log-probabilities, and the sum of every turn's gradients, come from one forward and one backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence: the last `scored` of its ids are looked at, each given all before it."""

    key: int
    """Whose it is; the caller's to choose."""
    ids: tuple[int, ...]
    scored: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Rows of which each begins with all of the one before;
    the last one's ids are the sequence that is read."""

    rows: tuple[Row, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """What is read."""
        return self.rows[-1].ids


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Chains padded on the right, where causal attention never looks."""

    chains: tuple[Chain, ...]

    @property
    def rows(self) -> list[Row]:
        """Of all chains, in order."""
        return [row for chain in self.chains for row in chain.rows]

    def ids(self) -> torch.Tensor:
        """[B, T]."""
        longest = max(len(chain.ids) for chain in self.chains)
        padded = torch.zeros(len(self.chains), longest, dtype=torch.long)
        for index, chain in enumerate(self.chains):
            padded[index, : len(chain.ids)] = torch.tensor(chain.ids)
        return padded

    def places(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Chain and position, [N] each, of the hidden state that predicts each scored id, row after row."""
        chains: list[int] = []
        positions: list[int] = []
        for index, chain in enumerate(self.chains):
            for row in chain.rows:
                chains += [index] * row.scored
                positions += range(len(row.ids) - row.scored - 1, len(row.ids) - 1)
        return torch.tensor(chains), torch.tensor(positions)

    def tokens(self) -> torch.Tensor:
        """The scored ids [N], in the order of `places`."""
        return torch.tensor([token for row in self.rows for token in row.ids[len(row.ids) - row.scored :]])

    @property
    def sizes(self) -> list[int]:
        """Scored ids of each row."""
        return [row.scored for row in self.rows]


def chained(rows: Sequence[Row]) -> list[Chain]:
    """Rows that extend one another, together. Found by their ids alone: no session has to be named.

    In the order of their ids a row is followed by what begins with it, so one look at the neighbour is
    enough. Of two rows that go on differently from the same beginning, the first in that order continues the
    chain.
    """
    chains: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.ids, row.key)):
        last = chains[-1][-1].ids if chains else ()
        if last and row.ids[: len(last)] == last:
            chains[-1].append(row)
        else:
            chains.append([row])
    return [Chain(tuple(chain)) for chain in chains]


def plan(rows: Sequence[Row], budget: int, *, share_prefixes: bool = True) -> list[MicroBatch]:
    """Never more padded tokens than the budget; a chain over it goes alone.

    Longest first, so that memory is asked for at its largest at once.
    """
    chains = chained(rows) if share_prefixes else [Chain((row,)) for row in rows]
    batches: list[list[Chain]] = []
    for chain in sorted(chains, key=lambda chain: (-len(chain.ids), chain.rows[0].key)):
        if batches and (len(batches[-1]) + 1) * len(batches[-1][0].ids) <= budget:
            batches[-1].append(chain)
        else:
            batches.append([chain])
    return [MicroBatch(tuple(batch)) for batch in batches]
