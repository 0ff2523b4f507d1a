"""The texts that ship with the demo keep what the demo promises."""

import ast
import itertools
import re
from pathlib import Path

import apps.judging
from apps.evaluation.demo.rule import one_short_sentence
from apps.evaluation.demo.script import load_script, plan_sessions

SCRIPT = load_script()


def test_questions_for_training_choosing_and_reporting_are_disjoint() -> None:
    train, validation, held_out = (
        {question.text for question in part} for part in (SCRIPT.train, SCRIPT.validation, SCRIPT.held_out)
    )
    assert (len(train), len(validation), len(held_out)) == (60, 12, 20)
    assert not train & validation
    assert not train & held_out
    assert not validation & held_out


def test_the_order_depends_on_the_seed_alone() -> None:
    first, again, other = (
        list(itertools.islice(plan_sessions(SCRIPT, seed=seed), 130)) for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other
    assert {lines.question for lines in first[:60]} == set(SCRIPT.train)
    assert {lines.complaint for lines in first} == set(SCRIPT.complaints)


def test_no_complaint_stands_in_a_list_of_the_judge() -> None:
    known = {_plain(text) for text in _texts_of(Path(apps.judging.__file__).parent)}
    assert known
    for complaint in SCRIPT.complaints:
        sentences = [_plain(part) for part in re.split(r"(?<=[.!?])\s", complaint)]
        assert not known & {_plain(complaint), *sentences}


def test_the_preference_is_stated_in_words_but_is_no_reply_itself() -> None:
    for complaint in SCRIPT.complaints:
        assert "one short sentence" in complaint.lower()
        assert not one_short_sentence(complaint, finish_reason="stop").passed


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
