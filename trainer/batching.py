"""Sequences into micro-batches: like lengths together, never more padded tokens than the budget."""

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
class MicroBatch:
    """Rows padded on the right, where causal attention never looks."""

    rows: tuple[Row, ...]

    def ids(self) -> torch.Tensor:
        """[B, T]."""
        longest = max(len(row.ids) for row in self.rows)
        padded = torch.zeros(len(self.rows), longest, dtype=torch.long)
        for index, row in enumerate(self.rows):
            padded[index, : len(row.ids)] = torch.tensor(row.ids)
        return padded

    def places(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Row and position, [N] each, of the hidden state that predicts each scored id, row after row."""
        rows: list[int] = []
        positions: list[int] = []
        for index, row in enumerate(self.rows):
            rows += [index] * row.scored
            positions += range(len(row.ids) - row.scored - 1, len(row.ids) - 1)
        return torch.tensor(rows), torch.tensor(positions)

    def tokens(self) -> torch.Tensor:
        """The scored ids [N], in the order of `places`."""
        return torch.tensor([token for row in self.rows for token in row.ids[len(row.ids) - row.scored :]])

    @property
    def sizes(self) -> list[int]:
        """Scored ids of each row."""
        return [row.scored for row in self.rows]


def plan(rows: Sequence[Row], budget: int) -> list[MicroBatch]:
    """Longest first, so that memory is asked for at its largest at once; a row over the budget goes alone."""
    ordered = sorted(rows, key=lambda row: (-len(row.ids), row.key))
    batches: list[list[Row]] = []
    for row in ordered:
        if batches and (len(batches[-1]) + 1) * len(batches[-1][0].ids) <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return [MicroBatch(tuple(batch)) for batch in batches]
