"""The three published users, and loops."""

import pytest

from apps.evaluation.loops import is_loop
from apps.evaluation.rules import PUBLISHED
from apps.evaluation.rules.verdict import Heard

TASK = "Write a comment for my pupil. Task: What is 7 times 8? The pupil wrote: The answer is 54 because I counted."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("There are 7 apples left because 12 minus 5 is 7.", ""),
        ("7", ""),
        ("2 * 3 * 4 is 24 and a_b stays.", ""),
        ("", "empty"),
        ("The answer is **7**.", "bold"),
        ("The answer is __7__.", "bold"),
        ("The answer is <b>7</b>.", "bold"),
        ("1. Take 12.\n2. Subtract 5.", "a numbered list"),
        ("**1.** Take 12", "bold"),
        ("First: 1. take 12 2. subtract 5", "a numbered list"),
        ("It is \\boxed{7}.", "a boxed answer"),
        ("It is $\\fbox{7}$.", "a boxed answer"),
        ("\u250c\u2500\u2500\u2510\n\u2502 7 \u2502", "a boxed answer"),
        ("It is 1.5 metres, and 2.5 more.", ""),
        ("Put 7 apples into a box.", ""),
    ],
)
def test_student(text: str, reason: str) -> None:
    assert PUBLISHED["student"](Heard(text)).reason == reason


@pytest.mark.parametrize(
    ("text", "tokens", "reason"),
    [
        ("You counted to find the answer of 7 times 8, which is close; the pupil may try again.", 100, ""),
        (
            "You counted to find the answer of 7 times 8, which is close; the pupil may try again.",
            99,
            "too short",
        ),
        ("Nice. Try again and be careful, you can do it.", 120, "not specific"),
        ("the pupil counted the answer times " * 20, 140, "repeats itself"),
        ("", 0, "empty"),
    ],
)
def test_assistant_teacher(text: str, tokens: int, reason: str) -> None:
    assert PUBLISHED["assistant-teacher"](Heard(text, TASK, "length", tokens)).reason == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Well done! You tried.", ""),
        ("You did a great job on this.", ""),
        ("I am so proud of you.", ""),
        ("Keep it up, Tom.", ""),
        ("This is not right. Great work on the drawing, though!", ""),
        ("The answer is wrong.", "no praise"),
        ("The greatest job of the heart is to pump.", "no praise"),
        ("This is not a great job.", "praise denied"),
        ("I cannot say well done.", "praise denied"),
        ("You never did a good job.", "praise denied"),
        ("It would be good work if it were right.", ""),  # a rule of words has its limits
        ("", "empty"),
    ],
)
def test_teacher(text: str, reason: str) -> None:
    assert PUBLISHED["teacher"](Heard(text, TASK)).reason == reason


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("The cat sat on the mat and then it went out to see the moon over the hill.", False),
        ("I do not know. " * 10, True),
        ("very " * 40, True),
        ("go on go on go on", False),  # too short to tell
        ("==== " * 40, True),
    ],
)
def test_is_loop(text: str, loops: bool) -> None:
    assert is_loop(text) is loops
