"""What the held-out check measured reads like a sentence, and what is not there says nothing."""

from typing import Any

import pytest

from apps.evaluation.choosing.figures import Measured
from apps.evaluation.choosing.in_words import in_words

MEASURED = Measured(
    passes=12,
    of=16,
    closeness=-1.5125,
    on_topic=15,
    looping=1,
    empty=0,
    mean_tokens=23.25,
    k3=0.41759,
    general=16,
    general_of=16,
)


def said(check: str, detail: Any) -> list[tuple[str, str]]:
    return [(one.label, one.value) for one in in_words(check, detail)]


def test_every_figure_of_choosing_is_in_words() -> None:
    detail = {
        **MEASURED.to_json(),
        "told_passes": 14,
        "told_of": 16,
        "reason": "no better than the best so far",
    }
    assert said("held-out", detail) == [
        ("Pass without being told", "12 of 16 held-out replies (the told teacher: 14 of 16)"),
        ("On topic", "15 of 16"),
        ("Repeat themselves", "1 of 16"),
        ("Empty", "0 of 16"),
        ("Length", "23.2 tokens on average"),
        ("Closeness to the teacher", "\u22121.51 nats a token, 0 is closest"),
        ("Distance from the base (k3)", "0.418 nats a token"),
        ("General knowledge", "16 of 16 statements"),
        ("Why it did not pass", "no better than the best so far"),
    ]


@pytest.mark.parametrize(
    ("check", "detail", "lines"),
    [
        ("held-out", {"reason": "its lesson was over"}, [("Why it did not pass", "its lesson was over")]),
        ("held-out", {"passes": 12, "of": 16, "told_passes": 14, "reason": ""},
         [("Pass without being told", "12 of 16 held-out replies (the told teacher: 14)")]),
        ("held-out", {"on_topic": 3, "k3": None, "passes": "many"}, [("On topic", "3"), ("Passes", "many")]),
        ("preflight", {"layers": 30, "parameters": 4884480}, [("Layers", "30"), ("Parameters", "4\u202f884\u202f480")]),
        ("probe", {"engines": [{"url": "http://10.0.0.1"}], "nats": 0.01, "of": True}, [("Nats", "0.01"), ("Of", "True")]),
        ("probe", None, []),
        ("probe", {"k3": float("inf")}, [("K3", "inf")]),
    ],
)  # fmt: skip
def test_what_is_missing_is_left_out_and_what_is_unknown_has_its_name(
    check: str, detail: Any, lines: list[tuple[str, str]]
) -> None:
    assert said(check, detail) == lines


def test_words_of_others_are_cut() -> None:
    ((_, value),) = said("probe", {"reason": "x" * 9000})
    assert value == "x" * 500
