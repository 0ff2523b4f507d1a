"""Whoever asks while shadow replies are written is read at once: the engine is never full of them."""

from pathlib import Path

from apps.engines.aside import MOST_AT_ONCE
from embedded.engine import Engine


def test_two_places_are_left_to_people() -> None:
    options = Engine(model=Path("x"), port=1, api_key="k", admin_key="a").options()
    running, tokens = options["max-running-requests"], options["max-total-tokens"]
    assert isinstance(running, int)
    assert isinstance(tokens, int)
    assert running - MOST_AT_ONCE == 2
    assert tokens >= running * 2048  # a context's worth for each
