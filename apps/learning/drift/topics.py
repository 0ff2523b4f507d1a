"""What people talk of, without an embedding model:
counts of hashed content words, and how far two weeks lie apart.

Deterministic. The words are neither stored nor told: only the distance is. Two small weeks differ by chance
alone, so a shift counts only beyond what shuffling the same conversations between the weeks gives (a
permutation test; whole conversations are shuffled, because words come in clumps).
"""

import hashlib
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from apps.learning.drift.measures import jensen_shannon

BUCKETS = 512
SHUFFLES = 100
QUANTILE = 0.99
MOST_CONVERSATIONS = 400  # of a week, the newest: the shuffles cost that much
LEAST_CONVERSATIONS = 10  # of a week; under it nothing is said

_WORD = re.compile(r"[^\W\d_]{4,}")
# frequent in any conversation, whatever it is of
_COMMON = frozenset(
    [
        "about",
        "above",
        "after",
        "again",
        "against",
        "also",
        "always",
        "another",
        "anything",
        "around",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "could",
        "does",
        "doing",
        "done",
        "down",
        "during",
        "each",
        "either",
        "else",
        "even",
        "ever",
        "every",
        "first",
        "from",
        "further",
        "give",
        "goes",
        "have",
        "having",
        "here",
        "hers",
        "herself",
        "himself",
        "however",
        "into",
        "itself",
        "just",
        "keep",
        "know",
        "last",
        "less",
        "like",
        "little",
        "long",
        "made",
        "make",
        "many",
        "might",
        "more",
        "most",
        "much",
        "must",
        "myself",
        "need",
        "never",
        "next",
        "nothing",
        "only",
        "other",
        "others",
        "ours",
        "over",
        "perhaps",
        "please",
        "quite",
        "rather",
        "really",
        "same",
        "shall",
        "should",
        "since",
        "some",
        "something",
        "still",
        "such",
        "sure",
        "take",
        "tell",
        "than",
        "thank",
        "thanks",
        "that",
        "their",
        "theirs",
        "them",
        "themselves",
        "then",
        "there",
        "these",
        "they",
        "thing",
        "things",
        "think",
        "this",
        "those",
        "though",
        "through",
        "today",
        "together",
        "under",
        "until",
        "upon",
        "very",
        "want",
        "wants",
        "well",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "whom",
        "whose",
        "will",
        "with",
        "within",
        "without",
        "would",
        "yeah",
        "your",
        "yours",
        "yourself",
    ]
)

Topics = Mapping[int, int]
"""How often the words of a bucket were said."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How far two weeks lie apart, bits, and how far chance alone would put them."""

    divergence: float
    floor: float

    @property
    def excess(self) -> float:
        """What is beyond chance."""
        return max(0.0, self.divergence - self.floor)


def topics_of(text: str) -> Counter[int]:
    """Return the content words of a text by bucket."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return Counter(_bucket(word) for word in words if word not in _COMMON)


def shift(before: Sequence[Topics], now: Sequence[Topics], *, seed: int) -> Shift | None:
    """Compare two weeks, each a list of its conversations' topics;
    None where one has too few to say anything."""
    before = [one for one in before if one][:MOST_CONVERSATIONS]
    now = [one for one in now if one][:MOST_CONVERSATIONS]
    if min(len(before), len(now)) < LEAST_CONVERSATIONS:
        return None
    found = _divergence(before, now)
    pooled = [*before, *now]
    order = random.Random(seed)  # noqa: S311 - a shuffle, not a secret
    by_chance = []
    for _ in range(SHUFFLES):
        order.shuffle(pooled)
        by_chance.append(_divergence(pooled[: len(before)], pooled[len(before) :]))
    by_chance.sort()
    return Shift(found, by_chance[min(SHUFFLES - 1, int(QUANTILE * SHUFFLES))])


def _divergence(one: Sequence[Topics], other: Sequence[Topics]) -> float:
    return jensen_shannon(_added(one), _added(other)) or 0.0


def _added(conversations: Sequence[Topics]) -> Counter[int]:
    total: Counter[int] = Counter()
    for one in conversations:
        total.update(one)
    return total


@lru_cache(maxsize=65_536)
def _bucket(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) % BUCKETS
