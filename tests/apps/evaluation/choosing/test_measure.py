"""What is asked of a version and of the base to measure one, and what is made of the replies."""

import uuid
from collections.abc import Iterator, Sequence

import pytest
from pytest_django import Settings

from apps.adapters.models import AdapterVersion, VersionState
from apps.engines.aside import Answer
from apps.engines.models import Engine, EngineState
from apps.evaluation.choosing.figures import Yardstick
from apps.evaluation.choosing.giving_way import GivesWay, Interrupted, ask_all
from apps.evaluation.choosing.measure import Replied, Teacher, measure_teacher, measure_version, questions
from tests.apps.evaluation.choosing.test_figures import BASE, TOLD
from tests.fake_engine import FakeEngine
from tests.fake_generation import END_OF_TURN, Request, Token

WISH = "Answer in one short sentence."


@pytest.fixture
def engine(db: None, settings: Settings) -> Iterator[FakeEngine]:
    with FakeEngine(api_key=settings.ENGINE_API_KEY, admin_key=settings.ENGINE_ADMIN_KEY) as running:
        Engine.objects.create(url=running.url, state=EngineState.READY, boot_id="1")
        yield running


def test_measuring_asks_only_choosing_questions_and_the_base(engine: FakeEngine) -> None:
    teacher = measure_teacher(url=engine.url, hint=WISH, room=lambda: 8)
    assert teacher.yardstick.told.of == teacher.yardstick.untold.of == 16
    assert teacher.yardstick.threshold == 0.0  # this engine scores a token alike after any prompt
    assert len(teacher.replies) == 16
    assert {request.adapter for request in engine.requests} == {None}

    engine.adapters["p-v1"] = "x"
    engine.score = lambda adapter, _: -1.0 if adapter else -2.0
    version = AdapterVersion(id=uuid.uuid4(), served_name="p-v1", state=VersionState.READY)
    measured = measure_version(url=engine.url, version=version, hint=WISH, teacher=teacher, room=lambda: 8)
    assert measured.closeness == -1.0
    assert measured.k3 == pytest.approx(0.3678794)
    assert (measured.mean_tokens, measured.empty, measured.looping) == (5.0, 0, 0)
    assert measured.of == 16


def test_a_reply_is_on_topic_where_its_own_question_makes_it_likelier(engine: FakeEngine) -> None:
    asked = questions(WISH)
    assert [one.elsewhere for one in asked] == [asked[(one.at + 2) % 16].told for one in asked]
    teacher = measure_teacher(url=engine.url, hint=WISH, room=lambda: 8)
    # this engine scores a token alike after any question, so that no reply is about its own
    assert (teacher.yardstick.told.on_topic, teacher.yardstick.untold.on_topic) == (0, 0)
    scored = {tuple(one.input_ids[: len(asked[4].told)]) for one in engine.requests}
    assert asked[4].told in scored
    answer = Answer([5, 6], text="Oui.", whole=True)
    assert Replied(asked[0], answer, [-1.0, -1.0], [-3.0, -3.0], [-1.0, -1.5]).is_on_topic
    assert not Replied(asked[0], answer, [-1.0, -1.5], [-3.0, -3.0], [-1.0, -1.0]).is_on_topic


def test_each_reply_is_scored_after_its_question_told_and_untold_and_after_another_of_its_shape(
    engine: FakeEngine,
) -> None:
    """By the base, whoever wrote it; the version itself is asked for what it was told nothing of."""
    asked = questions(WISH)
    prompts = {
        prompt: (one.at, name)
        for one in asked
        for name, prompt in (("told", one.told), ("untold", one.untold))
    }
    seen: set[tuple[str | None, int, str, int]] = set()

    def reply(request: Request) -> tuple[Token, ...]:
        at, _ = prompts.get(tuple(request.input_ids), (0, ""))
        return Token(200 + at, "x"), Token(END_OF_TURN, "")

    def score_of(request: Request, token: int) -> float:
        ids = tuple(request.input_ids)
        said = [kind for prompt, kind in prompts.items() if ids[: len(prompt)] == prompt]
        if not said:  # what any version should still know
            return -1.0
        (at, name), wrote = said[0], ids[-2] - 200
        if token == END_OF_TURN:
            seen.add((request.adapter, at, name, wrote))
        if name == "untold":
            return -2.0
        return -1.0 if at == wrote else -3.0

    engine.reply, engine.score_of = reply, score_of
    teacher = measure_teacher(url=engine.url, hint=WISH, room=lambda: 8)
    by_the_base = {
        (None, at, name, wrote)
        for wrote in range(16)
        for at, name in ((wrote, "told"), (wrote, "untold"), ((wrote + 2) % 16, "told"))
    }
    assert seen == by_the_base
    stick = teacher.yardstick
    assert (stick.threshold, stick.told.on_topic, stick.untold.on_topic) == (1.0, 16, 16)
    assert (stick.told.passes, stick.untold.passes, stick.untold.closeness) == (16, 16, -2.0)

    seen.clear()
    engine.adapters["p-v1"] = "x"
    version = AdapterVersion(id=uuid.uuid4(), served_name="p-v1", state=VersionState.READY)
    measured = measure_version(url=engine.url, version=version, hint=WISH, teacher=teacher, room=lambda: 8)
    assert seen == by_the_base | {("p-v1", at, "untold", at) for at in range(16)}
    assert (measured.on_topic, measured.passes, measured.closeness, measured.k3) == (16, 16, -2.0, 0.0)


def test_while_it_teaches_half_of_the_questions_are_asked_until_that_half_passes(engine: FakeEngine) -> None:
    """This engine's replies all have the contrast 0:
    above the threshold all of them pass, below it none does."""
    engine.adapters["p-v1"] = "x"
    version = AdapterVersion(id=uuid.uuid4(), served_name="p-v1", state=VersionState.READY)
    asked = []
    for threshold in (0.1, 0.0):
        engine.requests.clear()
        measured = measure_version(
            url=engine.url,
            version=version,
            hint=WISH,
            teacher=Teacher(Yardstick(threshold, TOLD, BASE), ((1, 2),) * 16),
            room=lambda: 8,
            in_full=False,
        )
        replies = [one for one in engine.requests if one.body["sampling_params"]["max_new_tokens"]]
        asked.append((measured.passes, measured.of, len(replies)))
        assert len({tuple(one.input_ids) for one in replies}) == len(replies)
        if threshold == 0.1:  # two of each shape, then none of the next two
            half = {one.untold for one in questions(WISH) if one.at % 4 < 2}
            assert {tuple(one.input_ids) for one in replies} == half
    assert asked == [(0, 8, 8), (16, 16, 16)]


def test_measuring_gives_way(engine: FakeEngine) -> None:
    engine.delay_s = 0.2
    with pytest.raises(Interrupted):
        measure_teacher(url=engine.url, hint=WISH, room=lambda: 0)


class People:
    """Somebody asks for as long as there are looks left, then nobody does; `after` is the room there is then."""

    def __init__(self, looks: int, *, after: int) -> None:
        self.looks, self.after = looks, after

    def room(self) -> int:
        self.looks -= 1
        return 0 if self.looks >= 0 else self.after


def test_between_people_one_request_is_asked_at_a_time_and_what_was_found_is_kept(engine: FakeEngine) -> None:
    asked: list[list[int]] = []
    given_up = iter([False, True, True, False, False])
    people = People(0, after=4)
    room = GivesWay(people.room, patience_s=60.0)

    def ask(some: Sequence[int]) -> list[int] | None:
        asked.append(list(some))
        if next(given_up):
            people.looks = 2
            assert room() == 0
            return None
        assert room() > 0
        return [one * 10 for one in some]

    assert ask_all([1, 2, 3], room, ask) == [10, 20, 30]
    assert asked == [[1], [2], [2], [2], [3]]
    asked.clear()
    with pytest.raises(Interrupted):  # who may wait for a long silence asks all at once, and gives all up
        ask_all([1, 2, 3], lambda: 8, lambda some: asked.append(list(some)))
    assert asked == [[1, 2, 3]]


def test_in_a_long_silence_many_are_asked_at_once_until_somebody_comes() -> None:
    asked: list[int] = []
    people = People(0, after=8)
    room = GivesWay(people.room, patience_s=60.0)

    def ask(some: Sequence[int]) -> list[int] | None:
        asked.append(len(some))
        if len(asked) == 2:  # somebody comes, and is likely to ask again
            people.looks, people.after = 1, 4
            assert room() == 0
            return None
        return list(some)

    assert ask_all(range(11), room, ask) == list(range(11))
    assert asked == [8, 3, 1, 1, 1]


def test_who_waited_long_enough_still_gives_way_with_many_at_once() -> None:
    """Eight at once would be felt by who comes; the one after that is asked beside them."""
    asked: list[int] = []
    looks = iter([0, 0, 8, 0, 0, 0, 0, 0])
    room = GivesWay(lambda: next(looks), patience_s=0.0)
    assert room.at_once() == 1
    assert room() == 1

    def ask(some: Sequence[int]) -> list[int] | None:
        asked.append(len(some))
        return list(some) if room() else None

    assert ask_all([1, 2], room, ask) == [1, 2]
    assert asked == [2, 1, 1]


def test_measuring_ends_where_people_leave_no_gap(engine: FakeEngine) -> None:
    """It has let go of the engine for as long as it may by then."""
    engine.adapters["p-v1"] = "x"
    version = AdapterVersion(id=uuid.uuid4(), served_name="p-v1", state=VersionState.READY)
    teacher = Teacher(Yardstick(0.0, TOLD, BASE), ((1, 2),) * 16)
    room = GivesWay(lambda: 0, patience_s=0.3)
    assert room() == 0
    measured = measure_version(url=engine.url, version=version, hint=WISH, teacher=teacher, room=room)
    assert (measured.of, room()) == (16, 1)
