from __future__ import annotations

from trainer.batching import Chain, MicroBatch, Row, chained, plan


def rows(*lengths: int) -> list[Row]:
    """Rows that have nothing in common."""
    return [Row(key, (100 + key,) * length, 1) for key, length in enumerate(lengths)]


def keys(chains: list[Chain]) -> list[list[int]]:
    return [[row.key for row in chain.rows] for chain in chains]


def test_like_lengths_go_together_within_the_budget() -> None:
    batches = plan(rows(3, 9, 4, 3, 12), 12)
    assert [[row.key for row in batch.rows] for batch in batches] == [[4], [1], [2, 0, 3]]


def test_a_row_over_the_budget_goes_alone() -> None:
    assert [len(batch.rows) for batch in plan(rows(50, 50), 10)] == [1, 1]


def test_places_are_those_of_the_states_that_predict_the_scored_ids() -> None:
    batch = MicroBatch((Chain((Row(0, (1, 2, 3, 4), 2),)), Chain((Row(1, (5, 6), 1),))))
    assert batch.ids().tolist() == [[1, 2, 3, 4], [5, 6, 0, 0]]
    chains, positions = batch.places()
    assert chains.tolist() == [0, 0, 1]
    assert positions.tolist() == [1, 2, 0]
    assert batch.tokens().tolist() == [3, 4, 6]


def test_turns_of_a_session_are_one_sequence_whatever_their_order() -> None:
    session = [Row(0, (1, 2, 3), 1), Row(1, (1, 2, 3, 4, 5, 6), 2), Row(2, (1, 2, 3, 4, 5, 6, 7), 1)]
    other = Row(3, (1, 2, 9), 1)
    assert keys(chained([session[2], other, session[0], session[1]])) == [[0, 1, 2], [3]]
    batch = MicroBatch((Chain(tuple(session)),))
    assert batch.ids().tolist() == [[1, 2, 3, 4, 5, 6, 7]]
    assert batch.places()[1].tolist() == [1, 3, 4, 5]
    assert batch.tokens().tolist() == [3, 5, 6, 7]
    assert batch.sizes == [1, 2, 1]


def test_a_branch_gets_a_sequence_of_its_own() -> None:
    trunk, left, right = Row(0, (1, 2), 1), Row(1, (1, 2, 3, 4), 2), Row(2, (1, 2, 5, 6), 2)
    leaf = Row(3, (1, 2, 5, 6, 7), 1)
    assert keys(chained([trunk, left, right, leaf])) == [[0, 1], [2, 3]]


def test_the_same_row_twice_is_read_once_and_scored_twice() -> None:
    assert keys(chained([Row(0, (1, 2), 1), Row(1, (1, 2), 1)])) == [[0, 1]]


def test_the_budget_counts_what_is_read() -> None:
    session = [Row(0, (1, 2, 3), 1), Row(1, (1, 2, 3, 4), 1)]
    assert len(plan(session, 4)) == 1
    assert len(plan(session, 4, share_prefixes=False)) == 2
