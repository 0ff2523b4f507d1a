"""Two complaints about one thing are one wish, told once, in the words that say most."""

import pytest

from apps.memory.sameness import Wish, is_same, says_more


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Answer in one short sentence.", "Cut your answer down to one short sentence.", True),
        ("Answer in one short sentence.", "Say it in one short sentence and stop.", True),
        ("Call me Sam.", "Address me as Sam.", True),
        ("Turn it into a numbered list.", "Give me a numbered list.", True),
        ("Begin with Step 1.", "Start with Step 1 and go on from there.", True),
        ("Use steps: Step 1, Step 2.", "Answer as Step 1, Step 2 and so on.", True),
        ("Answer for a five-year-old.", "Give an answer that a five-year-old understands.", True),
        ("Begin with a short summary.", "End with a short summary.", False),
        ("Begin with Step 1.", "Begin with Step 2.", False),
        ("Use steps.", "Without steps.", False),
        ("Answer in one short sentence.", "Answer in two short sentences.", False),
        ("Answer in French.", "Answer in German.", False),
        ("No lists.", "Use lists.", False),
        # how it is asked for is all that these say
        ("Explain the code.", "Show the code.", False),
        ("Tell me about cats.", "Cut the cats.", False),
    ],
)
def test_the_same_but_for_how_it_is_asked_for(one: str, other: str, same: bool) -> None:
    assert is_same(Wish.of(one), Wish.of(other)) is same
    assert is_same(Wish.of(other), Wish.of(one)) is same


@pytest.mark.parametrize(
    ("one", "other", "more"),
    [
        ("Use a numbered list of three points.", "Give me a numbered list.", True),
        ("Two simple sentences, as for a five-year-old.", "Two sentences for a five-year-old.", True),
        ("Give me a numbered list.", "Use a numbered list of three points.", False),
        ("Number the steps: Step 1, Step 2.", "Use steps: Step 1, Step 2.", True),
        ("Answer with a numbered list, one point on each line.", "Answer as a numbered list.", True),
        ("Start with 1 and make a numbered list.", "Give me a numbered list.", True),
        ("Use two simple sentences, as for a five-year-old.", "Answer in two sentences.", True),
        ("Use two simple sentences, as for a five-year-old.", "Use two simple sentences.", True),
        ("Use two simple sentences, as for a lawyer.", "Use two simple sentences.", False),
        ("End with a short summary.", "Begin with a short summary.", False),
        ("Give me a numbered list.", "Use a numbered list.", False),
        # what is added limits when it holds, denies, or nothing is known to be shared
        ("Give short answers when I am at work.", "Give short answers.", False),
        ("Give short answers about cooking.", "Give short answers.", False),
        ("Answer in one short sentence at work.", "Answer in one short sentence.", False),
        ("Give short answers to my kids.", "Give short answers.", False),
        ("Answer in a list, but don\u2019t number it.", "Answer in a list.", False),
        ("Use a numbered list without numbers.", "Use a numbered list.", False),
        ("Mention prices and names.", "Mention prices.", False),
        ("A short answer in French.", "Answer in German.", False),
    ],
)
def test_all_of_it_and_more(one: str, other: str, more: bool) -> None:
    assert says_more(Wish.of(one), Wish.of(other)) is more


@pytest.mark.parametrize(
    "words",
    [
        *("without " + "and " * 96, "without " + "a, " * 130, "leave out " + "x or " * 78),
        *("leave " + "x and " * 64, "don't leave " * 33, "bold and " * 43),
    ],
)
def test_a_row_of_things_without_end_is_read_at_once(words: str) -> None:
    assert len(words) <= 400
    Wish.of(f"{words}short")
