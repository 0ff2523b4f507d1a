"""What a preference speaks about, so that "shorter" and "longer" are known to exclude each other.

No model is asked.
"""

import re
from collections.abc import Iterable

from apps.judging.backends.cue.lexicon import FORMS, LANGUAGES, VERBS

# a row of things: "without bold, lists or boxes"; "no essays, a list" is none
_ROW = (
    r"(?:(?:the|any|all)\s+)?"
    r"(?:\w+(?:\s+\w+)?(?:,\s*(?:and\s+|or\s+)?|\s+(?:and|or|nor)\s+)(?:(?:the|any|all)\s+)?){1,3}"
)
_DENIED = re.compile(
    # "no more than two" sets a bound, "there is no list" says what is missed
    r"\b(?:(?<!there is )(?<!there was )(?<!there are )(?<!there were )(?<!there's )(?:no|not)(?! (?:more|less|fewer|longer|shorter|larger|bigger) than\b)"
    r"|no need (?:for|of)|never|don't|dont|stop|(?:less|fewer)(?! than\b))\s+(?:\w+\s+){0,2}$"
    rf"|\bnever\s+{_ROW}$"
)
# the nearest of them counts: "avoid leaving out the list"
_LEFT_OUT = re.compile(
    r"^.*\b(?P<verb>without|avoid|skip|drop|omit|remove|lose|(?:leave|take|cut) (?:out|away)"
    r"|(?P<ing>avoiding|skipping|dropping|omitting|removing|losing|(?:leaving|taking|cutting) (?:out|away)))\s+"
    rf"(?P<between>(?:\w+\s+){{0,2}}|{_ROW})$",
    re.DOTALL,
)
# "leave the bold and the lists out": the verb before what is left out, its other half after it
_LEFT = re.compile(
    r"^.*\b(?P<verb>leave|take|(?P<ing>leaving|taking))\s+"
    r"(?P<between>(?:(?!(?:it|me|them|us|in|out|away|as)\b)\w+\s+){0,4})$",
    re.DOTALL,
)
_OUT = re.compile(
    r"(?:\s+(?!and\b|or\b)\w+)?(?:\s+(?:and|or)\s+(?:(?:the|any|all)\s+)?(?!(?:write|spell|print|type|read|set|lay|carry)\b)\w+){0,2}"
    r"\s+(?:out|away)\b"
)
# who is told not to leave something out, or asked why it was, has it
_KEPT = re.compile(
    r"\b(?:(?:don't|dont|not|never)\s+(?:(?:ever|just|you|please|again|simply)\s+)?|did(?:n't)? you\s+)$"
)
_KEPT_WITHOUT = re.compile(r"\b(?:don't|dont|not|never|no)\s+(?:\w+\s+)?$")
_KEPT_ING = re.compile(r"\b(?:don't|dont|not|never|no|stop|avoid|without|quit)\s+(?:(?:keep|start|you)\s+)?$")
_POLES: tuple[tuple[str, str, str, re.Pattern[str]], ...] = tuple(
    (topic, pole, other, re.compile(rf"\b(?:{words})\b"))
    for topic, pole, other, words in (
        (
            "length", "short", "long",
            (
                r"short(?:er|est|ened)?|brief(?:er|ly)?|concise(?:ly)?|succinct(?:ly)?|terse|compact|crisp"
                r"|(?:one|a single) (?:\w+ )?sentence|one[- ]liner|few words"
            ),
        ),
        (
            "length", "long", "short",
            r"long(?:er|est)?|length(?:y|ier)|detail(?:s|ed)?|elaborate|in[- ]depth|verbose|wordy|exhaustive|thorough(?:ly)?",
        ),
        ("shape", "list", "prose", r"lists?|bullet(?:s|ed)?|bullet points?|numbered"),
        ("shape", "prose", "list", r"prose|(?:flowing|plain) (?:text|paragraphs?)"),
        ("tone", "formal", "casual", r"formal(?:ly)?|professional(?:ly)?"),
        ("tone", "casual", "formal", r"casual(?:ly)?|informal(?:ly)?|slang"),
        ("level", "simple", "expert", r"simpl(?:e|er|est|y)|plain(?:er)?|(?:\w+|\d)[- ]years?[- ]olds?|beginners?|child(?:ren)?"),
        ("level", "expert", "simple", r"technical|expert|advanced|academic"),
        ("emoji", "with", "without", r"emojis?|emoticons?"),
        ("bold", "with", "without", r"bold"),
        ("steps", "with", "without", r"steps|step[- ]by[- ]step|step (?:\d+|one)"),
        ("examples", "with", "without", r"examples?"),
        ("humour", "with", "without", r"jokes?|funny|humou?r(?:ous)?"),
    )
)  # fmt: skip
_NAME = re.compile(
    r"\b(?:call|address) me (?:as )?[\"'“]?(\w[\w .'-]{0,30}?)[\"'”]?(?:$|[.,;!?]|\b(?:in|at|when|from|and)\b)"
)
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SENTENCES = re.compile(
    rf"\b({'|'.join(_NUMBERS)}|a single|\d{{1,2}}) (?:(?!or\b|to\b)[\w-]+ ){{0,2}}sentences?\b"
)
_STANDING = frozenset(
    {
        *(
            "always",
            "never",
            "every",
            "each",
            "whenever",
            "from",
            "future",
            "end",
            "start",
            "begin",
            "finish",
        ),
        *("open", "close", "call", "address"),
    }
)


def topics_of(text: str) -> list[str]:
    """Return `topic:pole` of everything a preference speaks about, sorted."""
    said = text.casefold().replace("\u2019", "'")
    found: set[str] = set()
    for topic, pole, other, pattern in _POLES:
        for match in pattern.finditer(said):
            denied = _is_denied(said[: match.start()], said[match.end() :])
            found.add(f"{topic}:{other if denied else pole}")
    for word in re.findall(r"\w+", said):
        if word in LANGUAGES:
            found.add(f"language:{word}")
    for match in _SENTENCES.finditer(said):
        if not _is_denied(said[: match.start()], said[match.end() :]):
            found.add(f"sentences:{_number(match[1])}")
    name = _NAME.search(said)
    if name is not None:
        found.add(f"name:{name[1].strip()}"[:60])
    return sorted(_without_doubt(found))


def excludes(one: Iterable[str], other: Iterable[str]) -> bool:
    """Return whether two preferences cannot both hold: they say different things about one topic."""
    mine, theirs = dict(_split(one)), dict(_split(other))
    return any(theirs.get(topic, pole) != pole for topic, pole in mine.items())


def is_general(text: str) -> bool:
    """Return whether it speaks of how answers should be. What does not may be about one answer only."""
    words = re.findall(r"[\w'-]+", text.casefold().replace("\u2019", "'"))
    if topics_of(text) or set(words) & (FORMS | _STANDING):
        return True
    return bool(words) and words[0] in VERBS


def _number(word: str) -> str:
    if word == "a single":
        return "one"
    return _NUMBERS[int(word)] if word.isdigit() and int(word) < len(_NUMBERS) else word


def _is_denied(before: str, after: str) -> bool:
    """Return whether what stands between two texts is not wanted:
    denied, or left out and not kept from being so."""
    left = _LEFT_OUT.match(before)
    if left is None and _OUT.match(after) is not None:
        left = _LEFT.match(before)
    if left is None:
        return _DENIED.search(before) is not None
    kept = _KEPT_ING if left["ing"] else _KEPT_WITHOUT if left["verb"] == "without" else _KEPT
    if kept.search(before[: left.start("verb")]) or "no" in left["between"].split():
        return False
    # "you keep skipping the list" tells of it, and asks for nothing
    return left["ing"] is None or _DENIED.search(before) is not None


def _without_doubt(found: set[str]) -> set[str]:
    """Leave topics out about which one preference says two things:
    "long, not short" was read already, this is no wish."""
    topics = [topic for topic, _ in _split(found)]
    return {one for one in found if topics.count(one.partition(":")[0]) == 1}


def _split(topics: Iterable[str]) -> list[tuple[str, str]]:
    return [(topic, pole) for topic, _, pole in (one.partition(":") for one in topics)]
