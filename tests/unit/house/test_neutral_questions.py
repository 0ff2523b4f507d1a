"""What is taught with, what versions are chosen by and what results are reported on never meet."""

import json
from pathlib import Path

from apps.learning.shadow.questions import key_of, neutral

DATA = Path(__file__).resolve().parents[3] / "apps" / "evaluation" / "data"


def test_the_neutral_sets_are_apart_from_each_other_and_from_every_task_list() -> None:
    teaching = {key_of(text) for text in neutral().teaching}
    choosing = {key_of(text) for text in neutral().choosing}
    listed = {
        key_of(question["text"] if isinstance(question, dict) else question)
        for file in sorted(DATA.glob("*.json"))
        for part in json.loads(file.read_text(encoding="utf-8")).values()
        for question in part
    }
    assert (len(teaching), len(choosing)) == (32, 16)
    assert len(listed) > 100
    assert not teaching & choosing
    assert not (teaching | choosing) & listed
