"""Which names of end users and requests are taken."""

import pytest

from apps.accounts.names import is_name


@pytest.mark.parametrize("name", ["a", "~", "user:7", "Ann B. C", "a" * 200])
def test_printable_ascii_is_a_name(name: str) -> None:
    assert is_name(name, longest=200)


@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "a\n", "a\x00", "a\x7f", "a\tb", "é", "a\u00a0", "a" * 201]
)
def test_nothing_else_is(name: str) -> None:
    assert not is_name(name, longest=200)
