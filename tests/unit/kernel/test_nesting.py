"""How deep a value nests is counted in lists and objects: what stands in none is no deeper than anything."""

import pytest

from kernel.nesting import is_deeper


@pytest.mark.parametrize(
    ("said", "deep"),
    [
        ("text", 0),
        ([], 1),
        ({"a": 1}, 1),
        ([1, {"a": []}, 2], 3),
        ({"a": [], "b": {"c": {"d": {"e": None}}}}, 4),
    ],
)
def test_a_value_is_deeper_than_less_than_it_has(said: object, deep: int) -> None:
    assert [is_deeper(said, most) for most in range(6)] == [most < deep for most in range(6)]
