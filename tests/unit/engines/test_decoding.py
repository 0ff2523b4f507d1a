"""Streams of tokens become text that never changes afterwards."""

import random

import pytest

from apps.engines.chat import ChatFormat
from apps.engines.decoding import Decoder

TEXTS = ("plain words", "é", "日本語です", "🙂👩‍👩‍👧", "mixed 🙂 text é\n日", " leading", "\ufffd real mark")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", range(5))
def test_parts_join_to_the_whole_however_they_are_cut(chat: ChatFormat, text: str, seed: int) -> None:
    chance = random.Random(seed)
    ids = [*chat.render([{"role": "user", "content": text}]), 2]
    decoder, parts, at = chat.decoder(), [], 0
    while at < len(ids):
        step = chance.randint(1, 3)
        parts.append(decoder.push(ids[at : at + step]))
        at += step
    parts.append(decoder.finish())

    assert "".join(parts) == chat.decode(ids)
    assert text in "".join(parts)


def test_half_a_character_is_held_back(chat: ChatFormat) -> None:
    smile = chat.render([{"role": "user", "content": "🙂"}])
    start = next(i for i in range(len(smile)) if chat.decode(smile[i : i + 4]) == "🙂")
    decoder = chat.decoder()

    assert [decoder.push([token]) for token in smile[start : start + 4]] == ["", "", "", "🙂"]


def test_bytes_that_never_become_a_character_are_given_out_at_the_end(chat: ChatFormat) -> None:
    smile = chat.render([{"role": "user", "content": "🙂"}])
    start = next(i for i in range(len(smile)) if chat.decode(smile[i : i + 4]) == "🙂")
    decoder = chat.decoder()

    assert decoder.push(smile[start : start + 2]) == ""
    assert decoder.finish() == "\ufffd"


def test_a_model_that_says_nonsense_is_not_held_back_for_ever() -> None:
    decoder = Decoder(lambda ids: "\ufffd" * len(ids))

    assert "".join(decoder.push([1]) for _ in range(12)) == "\ufffd" * 8
