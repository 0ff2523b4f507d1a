"""Ask an engine the choosing questions of one version, and the base what it thinks of the replies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from apps.adapters.models import AdapterVersion
from apps.engines.aside import Answer, ask_aside, score_aside
from apps.engines.chat import chat_format
from apps.evaluation.choosing.figures import Measured, Yardstick, contrast, k3, threshold_between
from apps.evaluation.topic import content_stems
from apps.learning.degenerate import why_degenerate
from apps.learning.shadow.questions import neutral
from kernel.errors import Unavailable

TEMPERATURE = 0.7
MAX_TOKENS = 64

GoOn = Callable[[], bool]


class Interrupted(Unavailable):
    """Somebody asked: the engine is theirs. Measuring again later may work."""

    code = "interrupted"


@dataclass(frozen=True, slots=True)
class Asked:
    """A choosing question as it reads without and with the wishes, in tokens."""

    text: str
    untold: tuple[int, ...]
    told: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Teacher:
    """The yardstick, and the replies of the base that was told, by question."""

    yardstick: Yardstick
    replies: tuple[tuple[int, ...], ...]


def questions(hint: str) -> tuple[Asked, ...]:
    """Return the choosing questions; none of them is ever taught with."""
    chat = chat_format()
    return tuple(
        Asked(
            text,
            tuple(chat.render([{"role": "user", "content": text}])),
            tuple(chat.hinted([{"role": "user", "content": text}], hint)),
        )
        for text in neutral().choosing
    )


def measure_teacher(*, url: str, hint: str, go_on: GoOn) -> Teacher:
    """Return what the base does with the wishes in its prompt and without. Raises Interrupted, or what the engine's client raises."""
    asked = questions(hint)
    told = _answers(url, None, [one.told for one in asked], go_on)
    untold = _answers(url, None, [one.untold for one in asked], go_on)
    replies = tuple(tuple(answer.output_ids) for answer in told)
    contrasts = [_contrasts(url, asked, answers, go_on) for answers in (told, untold)]
    threshold = threshold_between(*contrasts)
    known = _general(url, None, go_on)
    closeness = _closeness(url, None, asked, replies, go_on)
    measured = [
        _measured(asked, answers, found, threshold, replies=replies, closeness=near, k3_mean=0.0, known=known)
        for answers, found, near in zip((told, untold), contrasts, (0.0, closeness), strict=True)
    ]
    return Teacher(Yardstick(threshold, *measured), replies)


def measure_version(
    *, url: str, version: AdapterVersion | None, hint: str, teacher: Teacher, go_on: GoOn
) -> Measured:
    """Return what a version (None: the bare base) does without being told. Raises as `measure_teacher` does."""
    adapter = version.served_name if version is not None else None
    asked = questions(hint)
    answers = _answers(url, adapter, [one.untold for one in asked], go_on)
    found = _contrasts(url, asked, answers, go_on)
    return _measured(
        asked,
        answers,
        found,
        teacher.yardstick.threshold,
        replies=teacher.replies,
        closeness=_closeness(url, adapter, asked, teacher.replies, go_on),
        k3_mean=_k3(url, adapter, asked, answers, go_on),
        known=_general(url, adapter, go_on),
    )


def _measured(
    asked: Sequence[Asked],
    answers: Sequence[Answer],
    contrasts: Sequence[float],
    threshold: float,
    *,
    replies: Sequence[Sequence[int]],
    closeness: float,
    k3_mean: float,
    known: int,
) -> Measured:
    decode = chat_format().decode
    about = [content_stems(f"{one.text} {decode(reply)}") for one, reply in zip(asked, replies, strict=True)]
    return Measured(
        passes=sum(value >= threshold for value in contrasts),
        of=len(answers),
        closeness=closeness,
        on_topic=sum(
            bool(content_stems(answer.text) & words) for answer, words in zip(answers, about, strict=True)
        ),
        looping=sum(bool(why_degenerate(answer.output_ids)) for answer in answers),
        empty=sum(not answer.text.strip() for answer in answers),
        mean_tokens=sum(len(answer.output_ids) for answer in answers) / len(answers),
        k3=k3_mean,
        general=known,
        general_of=len(neutral().general),
    )


def _answers(url: str, adapter: str | None, prompts: Sequence[Sequence[int]], go_on: GoOn) -> list[Answer]:
    sampling = {"temperature": TEMPERATURE, "max_new_tokens": MAX_TOKENS}
    answers = ask_aside(url=url, adapter=adapter, prompts=prompts, sampling=sampling, go_on=go_on)
    if not all(answer.whole and answer.output_ids for answer in answers):
        raise Interrupted("somebody asked meanwhile", retry_after_s=5.0)
    return answers


def _scores(
    url: str, asked: Sequence[tuple[str | None, Sequence[int], Sequence[int]]], go_on: GoOn
) -> list[list[float]]:
    """Return the log-probabilities of each reply after its prompt, for (adapter, prompt, reply)."""
    found = score_aside(
        url=url, asked=[(adapter, [*prompt, *reply]) for adapter, prompt, reply in asked], go_on=go_on
    )
    if found is None:
        raise Interrupted("somebody asked meanwhile", retry_after_s=5.0)
    return [scores[-len(reply) :] for scores, (_, _, reply) in zip(found, asked, strict=True)]


def _contrasts(url: str, asked: Sequence[Asked], answers: Sequence[Answer], go_on: GoOn) -> list[float]:
    pairs = list(zip(asked, answers, strict=True))
    told = _scores(url, [(None, one.told, answer.output_ids) for one, answer in pairs], go_on)
    untold = _scores(url, [(None, one.untold, answer.output_ids) for one, answer in pairs], go_on)
    return [contrast(a, b) for a, b in zip(told, untold, strict=True)]


def _closeness(
    url: str, adapter: str | None, asked: Sequence[Asked], replies: Sequence[Sequence[int]], go_on: GoOn
) -> float:
    pairs = zip(asked, replies, strict=True)
    scores = _scores(url, [(adapter, one.untold, reply) for one, reply in pairs], go_on)
    return sum(map(sum, scores)) / sum(map(len, scores))


def _k3(
    url: str, adapter: str | None, asked: Sequence[Asked], answers: Sequence[Answer], go_on: GoOn
) -> float:
    pairs = list(zip(asked, answers, strict=True))
    own, base = (
        _scores(url, [(which, one.untold, answer.output_ids) for one, answer in pairs], go_on)
        for which in (adapter, None)
    )
    values = [k3(a, b) for a, b in zip(own, base, strict=True)]
    return sum(values) / len(values)


def _general(url: str, adapter: str | None, go_on: GoOn) -> int:
    """Return how many statements of the neutral set a version would rather end rightly."""
    rows = [(adapter, begin, end) for begin, right, wrong in _statements() for end in (right, wrong)]
    scores = [sum(found) / len(found) for found in _scores(url, rows, go_on)]
    return sum(right > wrong for right, wrong in zip(scores[::2], scores[1::2], strict=True))


@cache
def _statements() -> tuple[tuple[list[int], list[int], list[int]], ...]:
    ids = chat_format().plain_ids
    return tuple((ids(text), ids(right), ids(wrong)) for text, right, wrong in neutral().general)
