"""Words of people, made fit to stand in a prompt as data:
one line, bounded, nothing invisible, no orders to the operator."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from kernel.errors import InvalidInput

LONGEST = 400  # characters of one entry
SHORTEST = 3

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'“«¿¡])")
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
# what speaks of the prompt, of rules and of roles instead of an answer's form
_ORDERS = re.compile(
    r"\b(?:ignor\w*|disregard\w*|forget\w*|overrid\w*|bypass\w*|disobey\w*|violat\w*|break|drop|skip|replac\w*|reveal\w*|repeat|print|show|leak\w*|output)\b"
    r"[^.!?]{0,60}\b(?:instructions?|operators?|rules?|system|prompts?|guidelines?|polic(?:y|ies)|developers?|guardrails?|"
    r"restrictions?|safety|above|previous|prior)\b"
    r"|\b(?:system|developer)\s*(?:prompt|message|instruction|mode|:)"
    r"|\b(?:you are|act as|pretend (?:to be|you)|become)\b[^.!?]{0,30}\b(?:unrestricted|jailbroken|dan|root|admin\w*|the operator|developer)\b"
    r"|\bjailbreak\w*|\bdo anything now\b|<\|[^|]*\|>|\[/?inst\]|</?(?:system|assistant|user|instructions?)\b"
    r"|^\s*(?:system|assistant|developer|operator)\s*:",
    re.IGNORECASE | re.MULTILINE,
)


class RefusedText(InvalidInput):
    """The text is none that may be kept as a preference; the message says why."""

    code = "refused_text"


@dataclass(frozen=True, slots=True)
class Compared:
    """What two texts are compared by."""

    stems: tuple[str, ...]
    fingerprint: str


def checked(text: str, *, field: str = "text") -> str:
    """Return what a person typed as one line; raises InvalidInput,
    which names the field and the limit, or RefusedText."""
    if len(text) > 4 * LONGEST:  # before anything reads all of it
        raise _too_long(field)
    for character in text:
        if character not in "\t\n\r" and unicodedata.category(character) in ("Cc", "Cs", "Co"):
            raise InvalidInput(
                f"`{field}` must not hold control characters (U+{ord(character):04X}).",
                field=field,
                code="invalid_value",
            )
    line = one_line(text)
    if len(line) > LONGEST:
        raise _too_long(field)
    if len(line) < SHORTEST or not _WORD.search(line):
        raise InvalidInput(
            f"`{field}` must have {SHORTEST} to {LONGEST} characters, words among them.",
            field=field,
            code="invalid_value",
        )
    why = why_refused(line)
    if why:
        raise RefusedText(f"`{field}` {why}.", field=field)
    return line


def overheard(text: str) -> tuple[list[str], list[str]]:
    """Return (kept, reasons): the preferences in a hint or correction, one a sentence,
    and why others are not kept."""
    kept: list[str] = []
    reasons: list[str] = []
    if len(text) > 4 * LONGEST:
        return [], [f"longer than {4 * LONGEST} characters"]
    why = why_refused(one_line(text))
    if why:  # of one that gives orders nothing is kept
        return [], [why]
    for sentence in _SENTENCE.split(one_line(text)):
        if len(sentence) > LONGEST:
            reasons.append(f"longer than {LONGEST} characters")
        elif len(sentence) < SHORTEST or not _WORD.search(sentence):
            reasons.append("without words")
        elif sentence not in kept:
            kept.append(sentence)
    return kept, reasons


def why_refused(line: str) -> str:
    """Return why a line is no preference but an attempt to speak as somebody else, or ""."""
    folded = unicodedata.normalize("NFKC", line)
    return "speaks about instructions or roles, not about answers" if _ORDERS.search(folded) else ""


def one_line(text: str) -> str:
    """Return text without control, format and private characters, half surrogates or line breaks."""
    shown = "".join(
        " " if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Zs") else c
        for c in text
        if unicodedata.category(c) not in ("Cf", "Cs", "Co") or c in "\u200c\u200d"
    )
    return " ".join(shown.split())


def compare(text: str) -> Compared:
    """Return the stems of the words that matter, in order: what only words it otherwise is the same."""
    words = [
        word.replace("\u2019", "'") for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    ]
    matter = [_stem(word) for word in words if word not in _FRAME] or words
    return Compared(tuple(matter), hashlib.sha256(" ".join(matter).encode()).hexdigest())


def is_near(one: Compared, other: Compared) -> bool:
    """Return whether two say the same in other words: nearly all words shared, and as many denied."""
    if one.fingerprint == other.fingerprint:
        return True
    a, b = set(one.stems), set(other.stems)
    if a & _DENY != b & _DENY:
        return False
    return len(a & b) >= 0.8 * len(a | b)


def _stem(word: str) -> str:
    for ending in ("'s", "ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


def _too_long(field: str) -> InvalidInput:
    return InvalidInput(
        f"`{field}` must have at most {LONGEST} characters.", field=field, code="string_above_max_length"
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DENY = _words("no not never without don't dont avoid stop less fewer non")
# words that frame a wish and say nothing of it
_FRAME = _words(
    "a an the please pls just only answer answers answering reply replies respond response responses give make write"
    " keep use me my your you it its to of in with as for and be is are was i want would like i'd should always"
    " this that from now on time next future"
)
