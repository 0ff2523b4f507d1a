from __future__ import annotations

from trainer.batching import MicroBatch, Row, plan


def test_like_lengths_go_together_within_the_budget() -> None:
    rows = [Row(key, (7,) * length, 1) for key, length in enumerate([3, 9, 4, 3, 12])]
    assert [[row.key for row in batch.rows] for batch in plan(rows, 12)] == [[4], [1], [2, 0, 3]]


def test_a_row_over_the_budget_goes_alone() -> None:
    assert [len(batch.rows) for batch in plan([Row(0, (7,) * 50, 1), Row(1, (7,) * 50, 1)], 10)] == [1, 1]


def test_places_are_those_of_the_states_that_predict_the_scored_ids() -> None:
    batch = MicroBatch((Row(0, (1, 2, 3, 4), 2), Row(1, (5, 6), 1)))
    assert batch.ids().tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    rows, positions = batch.places()
    assert rows.tolist() == [0, 0, 1]
    assert positions.tolist() == [1, 2, 0]
    assert batch.tokens().tolist() == [3, 4, 6]
