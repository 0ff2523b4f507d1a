"""Tokens to text, a few at a time, for streams."""

from collections.abc import Callable, Iterable, Sequence

_HALF = "\ufffd"
_LONGEST_CHARACTER = 8
"""Tokens after which a replacement mark is taken for real: no character is spread over more."""


class Decoder:
    """Decodes one reply as it comes: what it has given out never changes afterwards.

    A character whose bytes are spread over several tokens is held back until it is whole; `finish`
    gives out what is left, broken bytes as U+FFFD. The parts joined equal the decoding of all ids.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._ids: list[int] = []
        self._context = 0  # where the window starts: some decoders treat the first token of a text apart
        self._given = 0  # ids before this one have been given out

    def push(self, ids: Iterable[int]) -> str:
        """Take in the next ids and return the text that is certain now (often empty)."""
        self._ids.extend(ids)
        text = self._fresh()
        if not text or (text.endswith(_HALF) and len(self._ids) - self._given < _LONGEST_CHARACTER):
            return ""
        self._context, self._given = self._given, len(self._ids)
        return text

    def finish(self) -> str:
        """Return what is left."""
        text = self._fresh()
        self._context = self._given = len(self._ids)
        return text

    def _fresh(self) -> str:
        before = self._decode(self._ids[self._context : self._given])
        return self._decode(self._ids[self._context :])[len(before) :]
