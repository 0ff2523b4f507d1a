"""Which samples make the next batch, in each mode."""

import random

import pytest

from apps.learning.rules.batch import Entry, Order, places_seen, take, window_size

STRICT, GREEDY = Order("strict", 1), Order("greedy", 1)


def queue(places: str, *, quiet: str = "") -> list[Entry[int]]:
    """r: ready, o: still under way, d: taken before; `quiet` names the places (digits) without signal."""
    states = {"r": "ready", "o": "open", "d": "done"}
    return [
        Entry(number, states[place], ready_at=float(number), signal=str(number) not in quiet)  # type: ignore[arg-type]
        for number, place in enumerate(places)
    ]


def keys(batch: list[Entry[int]]) -> list[int]:
    return [entry.key for entry in batch]


def test_the_window_is_a_part_of_the_buffer_and_never_empty() -> None:
    assert [window_size(n, 0.3) for n in (1, 3, 4, 10, 64)] == [1, 1, 1, 3, 19]
    assert window_size(64, 0.0) == 1


def test_strict_waits_for_the_oldest() -> None:
    assert keys(take(queue("rrorr"), STRICT, 4)) == [0, 1]
    assert keys(take(queue("orrrr"), STRICT, 4)) == []
    assert keys(take(queue("ddrrr"), STRICT, 2)) == [2, 3]


def test_greedy_takes_what_ended_first_whenever_it_began() -> None:
    entries = [
        Entry(0, "open"), Entry(1, "ready", ready_at=9.0), Entry(2, "ready", ready_at=3.0), Entry(3, "ready", ready_at=5.0)
    ]  # fmt: skip
    assert keys(take(entries, GREEDY, 2)) == [2, 3]
    assert keys(take(entries, GREEDY, 9)) == [1, 2, 3]


def test_a_window_goes_no_further_than_its_places_from_the_oldest() -> None:
    window = Order("windowed", 4)
    assert keys(take(queue("orrrrrr"), window, 8)) == [1, 2, 3]
    # what was taken keeps its place until the oldest is gone
    assert keys(take(queue("oddrrrr"), window, 8)) == [3]
    assert keys(take(queue("odddrrr"), window, 8)) == []
    # and when the oldest is taken, the window moves on
    assert keys(take(queue("rdddrrr"), window, 8)) == [0, 4, 5, 6]
    assert keys(take(queue("rorrrrr"), window, 8)) == [0, 2, 3, 4]


@pytest.mark.parametrize("order", [Order("windowed", 12), GREEDY])
def test_signal_comes_first_but_a_quarter_is_the_oldest_whatever_it_says(order: Order) -> None:
    entries = queue("r" * 12, quiet="0123456")
    assert keys(take(entries, order, 4)) == [0, 7, 8, 9]
    assert keys(take(entries, order, 8)) == [0, 1, 2, 7, 8, 9, 10, 11]


def test_nothing_starves_behind_samples_with_signal() -> None:
    """A sample at place k is taken within ⌈k / ⌈B / 4⌉⌉ batches, however many with signal keep coming."""
    size, order = 8, Order("windowed", 40)
    entries = [Entry(number, "ready", signal=number % 2 == 1) for number in range(40)]
    coming = iter(range(1001, 100_000, 2))
    for batch in range(1, 11):
        taken = set(keys(take(entries, order, size)))
        entries = [entry for entry in entries if entry.key not in taken]
        entries += [Entry(next(coming), "ready") for _ in range(size)]
        left = [entry.key for entry in entries if entry.key < 40]
        assert all(key >= 2 * batch for key in left), (batch, left)


def test_a_batch_is_whole_in_order_and_without_repetition_whatever_the_queue() -> None:
    chance = random.Random(3)
    for _ in range(300):
        entries = queue("".join(chance.choice("rrrod") for _ in range(30)), quiet="12345")
        for order in (STRICT, GREEDY, Order("windowed", chance.randint(1, 20))):
            size = chance.randint(1, 12)
            batch = keys(take(entries, order, size))
            assert batch == sorted(set(batch))
            assert len(batch) <= size
            assert all(entries[key].state == "ready" for key in batch)


@pytest.mark.parametrize("order", [STRICT, Order("windowed", 3), Order("windowed", 9)])
def test_no_batch_comes_from_beyond_the_places_that_are_said_to_matter(order: Order) -> None:
    chance = random.Random(4)
    for _ in range(200):
        entries = queue("".join(chance.choice("rrro") for _ in range(30)))
        size = chance.randint(1, 12)
        assert take(entries[: places_seen(order, size)], order, size) == take(entries, order, size)
