"""What is streamed is made as it is taken."""

from collections.abc import Iterator

import pytest

from kernel.streams import one_by_one


async def test_a_piece_is_made_once_the_one_before_is_taken() -> None:
    made: list[int] = []

    def pieces() -> Iterator[int | None]:
        for number in range(3):
            made.append(number)
            yield number or None

    taken = one_by_one(pieces())
    assert await anext(taken) is None
    assert made == [0]
    assert await anext(taken) == 1
    assert made == [0, 1]
    assert [piece async for piece in taken] == [2]
    assert made == [0, 1, 2]


async def test_what_breaks_breaks_for_the_reader() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a"
        raise OSError("the disk is gone")

    taken = one_by_one(pieces())
    assert await anext(taken) == b"a"
    with pytest.raises(OSError, match="the disk is gone"):
        await anext(taken)
