"""Tokens to text, a few at a time, for streams."""

from collections.abc import Callable, Iterable, Sequence

_HALF = "\ufffd"
_LONGEST_CHARACTER = 4
"""Tokens over which one character is spread at most: it has four bytes."""


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
        end = len(self._ids)
        for cut in range(end, max(self._given, end - _LONGEST_CHARACTER), -1):
            text = self._between(self._given, cut)
            if text and not text.endswith(_HALF):
                return self._give(text, cut)
        if end - self._given > _LONGEST_CHARACTER:
            # nothing that comes can still complete the oldest ones: they are broken, or a real U+FFFD
            cut = end - _LONGEST_CHARACTER
            return self._give(self._between(self._given, cut), cut)
        return ""

    def finish(self) -> str:
        """Return what is left."""
        return self._give(self._between(self._given, len(self._ids)), len(self._ids))

    def _give(self, text: str, cut: int) -> str:
        self._context, self._given = self._given, cut
        return text

    def _between(self, start: int, end: int) -> str:
        before = self._decode(self._ids[self._context : start])
        return self._decode(self._ids[self._context : end])[len(before) :]
