"""Ask an engine the choosing questions of one version, and the base what it thinks of the replies."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from apps.adapters.models import AdapterVersion
from apps.engines.aside import Answer, Room, ask_aside, score_aside
from apps.engines.chat import chat_format
from apps.evaluation.choosing.figures import (
    Measured,
    Yardstick,
    contrast,
    is_promising,
    k3,
    threshold_between,
)
from apps.evaluation.choosing.giving_way import ask_all
from apps.learning.degenerate import why_degenerate
from apps.learning.shadow.questions import neutral

TEMPERATURE = 0.7
MAX_TOKENS = 48
"""Of a reply, as of shadow replies: what a form is decided in."""

SHAPES = 2
"""The choosing questions take turns in so many shapes: "What is …?", "How do I …?"."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A choosing question as it reads without and with the wishes, in tokens.

    `at`: its place among all of them.
    """

    at: int
    untold: tuple[int, ...]
    told: tuple[int, ...]
    elsewhere: tuple[int, ...]
    """Another question of the same shape, with the wishes."""


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply, and what the base thinks of it with the wishes and without: log-probabilities, nats."""

    asked: Asked
    answer: Answer
    told: list[float]
    untold: list[float]
    elsewhere: list[float]
    """With the wishes, after another question."""

    @property
    def contrast(self) -> float:
        """Return by how much likelier the base finds the reply once it is told, nats a token."""
        return contrast(self.told, self.untold)

    @property
    def is_on_topic(self) -> bool:
        """Return whether the base finds the reply likelier after its own question than after another one.

        Words in common would say it of English alone: a wish may be for another language.
        """
        return sum(self.told) > sum(self.elsewhere)


@dataclass(frozen=True, slots=True)
class Teacher:
    """The yardstick, and the replies of the base that was told, by question."""

    yardstick: Yardstick
    replies: tuple[tuple[int, ...], ...]


def questions(hint: str) -> tuple[Asked, ...]:
    """Return the choosing questions; none of them is ever taught with."""
    chat = chat_format()
    chats = [[{"role": "user", "content": text}] for text in neutral().choosing]
    told = [tuple(chat.hinted(one, hint)) for one in chats]
    return tuple(
        Asked(at, tuple(chat.render(one)), told[at], told[(at + SHAPES) % len(told)])
        for at, one in enumerate(chats)
    )


def measure_teacher(*, url: str, hint: str, room: Room) -> Teacher:
    """Return what the base does with the wishes in its prompt and without.

    Raises Interrupted, or what the engine's client raises.
    """
    asked = questions(hint)
    told = _replied(url, None, asked, room, with_wishes=True)
    untold = _replied(url, None, asked, room)
    replies = tuple(tuple(one.answer.output_ids) for one in told)
    threshold = threshold_between([one.contrast for one in told], [one.contrast for one in untold])
    known = _general(url, None, room)
    closeness = _closeness(url, None, asked, replies, room)
    measured = [
        _measured(found, threshold, closeness=near, k3_mean=0.0, known=known)
        for found, near in ((told, 0.0), (untold, closeness))
    ]
    return Teacher(Yardstick(threshold, *measured), replies)


def measure_version(
    *, url: str, version: AdapterVersion, hint: str, teacher: Teacher, room: Room, in_full: bool = True
) -> Measured:
    """Return what a version does without being told. Raises as `measure_teacher` does.

    Unless `in_full`, half of the questions are asked first, and the others only where that half passes nearly
    as often as the teacher: writing replies is what measuring costs, and far from the teacher its fixed
    replies say more.
    """
    stick, adapter = teacher.yardstick, version.served_name
    asked = questions(hint)
    closeness = _closeness(url, adapter, asked, teacher.replies, room)
    known = _general(url, adapter, room)
    # groups of one question of each shape keep all shapes in each half
    first = [one for one in asked if one.at // SHAPES % 2 == 0]
    rest = [one for one in asked if one.at // SHAPES % 2]
    replied = _replied(url, adapter, asked if in_full else first, room)
    if not in_full and is_promising(_passes(replied, stick.threshold), len(replied), stick):
        replied += _replied(url, adapter, rest, room)
    return _measured(
        replied,
        stick.threshold,
        closeness=closeness,
        k3_mean=_k3(url, adapter, replied, room),
        known=known,
    )


def _measured(
    replied: Sequence[Replied],
    threshold: float,
    *,
    closeness: float,
    k3_mean: float,
    known: int,
) -> Measured:
    answers = [one.answer for one in replied]
    return Measured(
        passes=_passes(replied, threshold),
        of=len(answers),
        closeness=closeness,
        on_topic=sum(one.is_on_topic for one in replied),
        looping=sum(bool(why_degenerate(answer.output_ids)) for answer in answers),
        empty=sum(not answer.text.strip() for answer in answers),
        mean_tokens=sum(len(answer.output_ids) for answer in answers) / len(answers),
        k3=k3_mean,
        general=known,
        general_of=len(neutral().general),
    )


def _passes(replied: Sequence[Replied], threshold: float) -> int:
    return sum(one.contrast >= threshold for one in replied)


def _replied(
    url: str, adapter: str | None, asked: Sequence[Asked], room: Room, *, with_wishes: bool = False
) -> list[Replied]:
    prompts = [one.told if with_wishes else one.untold for one in asked]
    answers = _answers(url, adapter, prompts, room)
    pairs = list(zip(asked, answers, strict=True))
    told = _scores(url, [(None, one.told, answer.output_ids) for one, answer in pairs], room)
    untold = _scores(url, [(None, one.untold, answer.output_ids) for one, answer in pairs], room)
    elsewhere = _scores(url, [(None, one.elsewhere, answer.output_ids) for one, answer in pairs], room)
    return [
        Replied(one, answer, *scores)
        for (one, answer), *scores in zip(pairs, told, untold, elsewhere, strict=True)
    ]


def _answers(url: str, adapter: str | None, prompts: Sequence[Sequence[int]], room: Room) -> list[Answer]:
    sampling = {"temperature": TEMPERATURE, "max_new_tokens": MAX_TOKENS}

    def ask(some: Sequence[Sequence[int]]) -> list[Answer] | None:
        answers = ask_aside(url=url, adapter=adapter, prompts=some, sampling=sampling, room=room)
        return answers if all(answer.whole and answer.output_ids for answer in answers) else None

    return ask_all(prompts, room, ask)


def _scores(
    url: str, asked: Sequence[tuple[str | None, Sequence[int], Sequence[int]]], room: Room
) -> list[list[float]]:
    """Return the log-probabilities of each reply after its prompt, for (adapter, prompt, reply)."""
    return ask_all(asked, room, lambda some: score_aside(url=url, asked=some, room=room))


def _closeness(
    url: str, adapter: str | None, asked: Sequence[Asked], replies: Sequence[Sequence[int]], room: Room
) -> float:
    scores = _scores(url, [(adapter, one.untold, replies[one.at]) for one in asked], room)
    return sum(map(sum, scores)) / sum(map(len, scores))


def _k3(url: str, adapter: str, replied: Sequence[Replied], room: Room) -> float:
    asked = [(adapter, one.asked.untold, one.answer.output_ids) for one in replied]
    own = _scores(url, asked, room)
    values = [k3(scores, one.untold) for scores, one in zip(own, replied, strict=True)]
    return sum(values) / len(values)


def _general(url: str, adapter: str | None, room: Room) -> int:
    """Return how many statements of the neutral set a version would rather end rightly."""
    rows = [(adapter, begin, end) for begin, right, wrong in _statements() for end in (right, wrong)]
    scores = [sum(found) / len(found) for found in _scores(url, rows, room)]
    return sum(right > wrong for right, wrong in zip(scores[::2], scores[1::2], strict=True))


@cache
def _statements() -> tuple[tuple[list[int], list[int], list[int]], ...]:
    ids = chat_format().plain_ids
    return tuple((ids(text), ids(right), ids(wrong)) for text, right, wrong in neutral().general)
