"""Who gets a slot next: first come, first served, with two stated exceptions."""

from apps.engines.slots.rules import BASE, Claim, Rules, Standing, decide

RULES = Rules(turn_s=1.0, tenant_handicap_s=10.0)


def standing(
    held: dict[str, float] | None = None, waiting: dict[str, float] | None = None, tenant: str | None = None
) -> Standing:
    return Standing(
        *(
            {
                name: Claim(tenant if tenant is not None else f"of {name}", at)
                for name, at in (claims or {}).items()
            }
            for claims in (held, waiting)
        )
    )


def granted(
    mine: Standing, *others: Standing, slots: int = 2, now: float = 100.0, rules: Rules = RULES
) -> tuple[list[str], bool]:
    decision = decide(slots=slots, now=now, mine=mine, others=others, rules=rules)
    return sorted(decision.granted), decision.contended


def test_free_slots_go_to_those_who_wait_longest() -> None:
    assert granted(standing(waiting={"c": 3, "a": 1, "b": 2})) == (["a", "b"], True)
    assert granted(standing(waiting={"a": 1, "b": 2})) == (["a", "b"], False)


def test_no_slot_is_given_out_twice() -> None:
    mine = standing(held={"a": 0}, waiting={"c": 2})
    assert granted(mine, standing(held={"b": 0})) == ([], True)
    assert granted(mine, standing(held={"a": 0})) == (["c"], False)  # the same adapter is one slot


def test_the_slot_of_another_process_that_waits_longer_is_left_to_it() -> None:
    assert granted(standing(held={"a": 0}, waiting={"c": 3}), standing(waiting={"b": 2})) == ([], True)
    assert granted(standing(held={"a": 0}, waiting={"c": 1}), standing(waiting={"b": 2})) == (["c"], True)


def test_what_is_in_work_takes_more_requests_at_no_cost() -> None:
    assert granted(standing(held={"a": 0, "b": 0}, waiting={"a": 50})) == (["a"], False)
    assert granted(standing(waiting={"a": 50}), standing(held={"a": 0, "b": 0})) == (["a"], False)


def test_an_old_turn_takes_no_requests_that_came_after_one_that_waits() -> None:
    mine = standing(held={"a": 0, "b": 0}, waiting={"c": 50, "a": 51, "b": 49})
    assert granted(mine) == (["b"], True)  # b asked before c did


def test_a_young_turn_lets_its_requests_overtake() -> None:
    mine = standing(held={"a": 99.5, "b": 0}, waiting={"c": 50, "a": 51, "b": 51})
    assert granted(mine) == (["a"], True)


def test_a_tenant_with_slots_counts_as_having_come_later() -> None:
    one = standing(held={"a": 0}, waiting={"b": 1, "c": 2}, tenant="greedy")
    other = standing(waiting={"z": 5}, tenant="modest")
    assert granted(other, one) == (["z"], True)
    assert granted(one, other) == ([], True)


def test_and_is_not_starved_for_it() -> None:
    one = standing(held={"a": 0}, waiting={"b": 1}, tenant="greedy")
    assert granted(one, standing(waiting={"z": 20}, tenant="modest")) == (["b"], True)


def test_the_base_is_one_of_them_and_belongs_to_no_tenant() -> None:
    assert granted(standing(held={BASE: 0, "a": 0}, waiting={"b": 1})) == ([], True)
    assert granted(standing(waiting={BASE: 1, "a": 2, "b": 3}, tenant="t")) == ([BASE, "a"], True)


def due(mine: Standing, *others: Standing, slots: int = 2, now: float = 100.0) -> list[str]:
    return sorted(decide(slots=slots, now=now, mine=mine, others=others, rules=RULES).due)


def test_the_oldest_turns_are_asked_back_as_many_as_wait() -> None:
    mine = standing(held={"a": 1, "b": 2, "c": 3}, waiting={"x": 50, "y": 51})
    assert due(mine, slots=3) == ["a", "b"]
    assert due(standing(held={"c": 3}), standing(held={"a": 1, "b": 2}, waiting={"x": 50}), slots=3) == []
    assert due(standing(held={"a": 1}), standing(held={"b": 2}, waiting={"x": 50})) == ["a"]


def test_nobody_waits_and_nothing_is_asked_back() -> None:
    assert due(standing(held={"a": 1, "b": 2})) == []
    assert due(standing(held={"a": 1}, waiting={"x": 50})) == []
    assert due(standing(held={"a": 1, "b": 2}, waiting={"a": 50})) == []


def test_a_young_turn_and_one_that_cannot_pause_are_not_asked_back() -> None:
    assert due(standing(held={"a": 99.5, "b": 2}, waiting={"x": 50, "y": 50})) == ["b"]
    pinned = Standing({"a": Claim("t", 1, pausable=False), "b": Claim("u", 2)}, {"x": Claim("v", 50)})
    assert due(pinned) == ["b"]
    # by one process's word it cannot pause, whatever another one says of its part
    elsewhere = Standing({"a": Claim("t", 1, pausable=False)}, {"x": Claim("v", 50)})
    assert due(standing(held={"a": 1, "b": 99.5}), elsewhere) == []


def test_who_paused_waits_behind_those_who_came_before_the_pause() -> None:
    assert granted(standing(held={"b": 50}, waiting={"a": 99, "x": 98})) == (["x"], True)
