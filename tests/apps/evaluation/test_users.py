"""The scripted users that ship keep what the measurements promise."""

import ast
import itertools
import re
from pathlib import Path

import pytest

import apps.judging
from apps.evaluation.rules import PUBLISHED, RULES, TEACHABLE
from apps.evaluation.topic import content_stems
from apps.evaluation.users import DATA, Question, load_tasks, load_user, plan_sessions
from apps.learning.shadow.questions import neutral
from kernel.errors import InvalidInput

TASKS = ("everyday", "homework", "grading")
EVERYBODY = pytest.mark.parametrize("name", list(RULES))


def test_the_published_three_and_the_seven_teachable() -> None:
    assert (len(PUBLISHED), len(TEACHABLE), len(RULES)) == (3, 7, 10)
    assert sorted(path.stem for path in (DATA / "users").glob("*.json")) == sorted(RULES)


def test_an_unknown_user_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput, match="there is no user 'pirate'; there are one-short-sentence, "
    ) as refused:
        load_user("pirate")
    assert refused.value.field == "users"


@pytest.mark.parametrize(
    ("name", "sizes"), [("everyday", (60, 12, 20)), ("homework", (40, 12, 20)), ("grading", (40, 12, 20))]
)
def test_task_lists_have_their_sizes(name: str, sizes: tuple[int, int, int]) -> None:
    tasks = load_tasks(name)
    assert (len(tasks.session), len(tasks.choosing), len(tasks.reporting)) == sizes
    assert all(24 <= len(part) <= 72 for part in (tasks.session,))
    assert all(len(question.text.split()) <= 45 for part in _parts(name) for question in part)


def test_questions_for_sessions_choosing_and_reporting_are_disjoint_over_all_lists() -> None:
    """By their text, and by what they are about: no question is another one in other words."""
    seen: dict[str, str] = {}
    for name in TASKS:
        for part, questions in zip(("session", "choosing", "reporting"), _parts(name), strict=True):
            for question in questions:
                assert seen.setdefault(_plain(question.text), f"{name} {part}") == f"{name} {part}"
            assert len({_plain(question.text) for question in questions}) == len(questions)


@pytest.mark.parametrize("name", TASKS)
def test_no_reporting_question_is_a_session_question_in_other_words(name: str) -> None:
    session, choosing, reporting = ([_meaning(question) for question in part] for part in _parts(name))
    for held in (*choosing, *reporting):
        assert held not in session
    for held in reporting:
        assert held not in choosing


@pytest.mark.parametrize("name", TASKS)
def test_the_platform_neither_teaches_nor_chooses_by_a_reporting_question(name: str) -> None:
    """Its neutral questions are others; those that a measurement asks are of the `evaluate`
    scope, which it leaves out."""
    neutral_set = neutral()
    shipped = {_meaning(Question(text)) for text in (*neutral_set.teaching, *neutral_set.choosing)}
    assert len(shipped) == len(neutral_set.teaching) + len(neutral_set.choosing)
    assert not shipped & {_meaning(question) for question in load_tasks(name).reporting}


@EVERYBODY
def test_the_order_depends_on_the_seed_alone(name: str) -> None:
    user = load_user(name)
    first, again, other = (list(itertools.islice(plan_sessions(user, seed=seed), 130)) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    length = len(user.tasks.session)
    assert {lines.question for lines in first[:length]} == set(user.tasks.session)
    assert {lines.complaints[0] for lines in first} == set(user.complaints)


@EVERYBODY
def test_a_session_never_says_the_same_complaint_twice_and_has_enough_for_eight_turns(name: str) -> None:
    user = load_user(name)
    assert (len(user.complaints), len(user.follow_ups)) == (8, 7)
    for lines in itertools.islice(plan_sessions(user, seed=1), 60):
        assert len(lines.complaints) == len(set(lines.complaints)) == 8


@EVERYBODY
def test_no_complaint_stands_in_a_list_of_the_judge(name: str) -> None:
    known = {_plain(text) for text in _texts_of(Path(apps.judging.__file__).parent)}
    assert known
    user = load_user(name)
    for complaint in (*user.complaints, *user.follow_ups):
        sentences = [_plain(part) for part in re.split(r"(?<=[.!?])\s", complaint)]
        spoken = [sentence for sentence in sentences if len(sentence.split()) > 2]  # "no." is everybody's
        assert not known & {_plain(complaint), *spoken}


@EVERYBODY
def test_words_are_the_users_own(name: str) -> None:
    """No user says the hint that the teacher is told, and no two users share a complaint."""
    user = load_user(name)
    others = {
        complaint
        for other in RULES
        if other != name
        for complaint in (*load_user(other).complaints, *load_user(other).follow_ups)
    }
    assert user.hint not in (*user.complaints, *user.follow_ups)
    assert not others & {*user.complaints, *user.follow_ups}


def test_the_preference_is_stated_in_words_but_is_no_reply_itself() -> None:
    user = load_user("one-short-sentence")
    for complaint in user.complaints:
        assert "one short sentence" in complaint.lower()
        assert not user.judge(user.tasks.session[0], text=complaint, finish_reason="stop", tokens=9).passed


def test_a_french_reply_is_on_topic_by_its_french_words() -> None:
    french = load_user("in-french")
    egg = next(question for question in french.tasks.reporting if "egg" in question.text)
    assert french.on_topic(egg, "Faites bouillir de l'eau dans une casserole.")
    assert not french.on_topic(egg, "Je ne sais pas quoi dire.")
    assert not load_user("my-friend").on_topic(egg, "Faites bouillir de l'eau dans une casserole.")
    assert all(question.french for question in french.tasks.reporting)


def _parts(name: str) -> tuple[tuple[Question, ...], ...]:
    tasks = load_tasks(name)
    return tasks.session, tasks.choosing, tasks.reporting


def _meaning(question: Question) -> frozenset[str]:
    numbers = re.findall(r"\d+", question.text)
    return frozenset({*content_stems(question.text), *numbers}) or frozenset({question.text})


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


def _texts_of(folder: Path) -> list[str]:
    """Return every string of a package's code and data files, and every line of its longer ones."""
    found: list[str] = []
    for path in folder.rglob("*"):
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found += [node.value, *node.value.splitlines()]
        elif path.suffix in {".json", ".txt"}:
            found += path.read_text(encoding="utf-8").splitlines()
    return found
