"""The other teachable rules: what passes, what does not, and replies that try to look right."""

import pytest

from apps.evaluation.rules import TEACHABLE
from apps.evaluation.rules.verdict import Heard

LIST = "1. Boil water.\n2. Add the egg.\n3. Wait."
FRENCH = "Pour cuire un œuf, il faut le plonger dans de l'eau bouillante pendant dix minutes."
KIND = "A magnet is a toy that can pull. It likes iron and other magnets."


def check(rule: str, text: str, *, finish_reason: str = "stop") -> str:
    """Return why the rule fails a reply, or ""."""
    verdict = TEACHABLE[rule](Heard(text, "How do I boil an egg?", finish_reason))
    assert verdict.passed == (verdict.reason == "")
    return verdict.reason


@pytest.mark.parametrize("rule", list(TEACHABLE))
@pytest.mark.parametrize("text", ["", "   \n", "...", "!!! \u200b", "\x00"])
def test_nothing_passes_by_being_empty(rule: str, text: str) -> None:
    assert check(rule, text) == "empty"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LIST, ""),
        ("Here is how:\n1) Boil water\n2) Add the egg", ""),
        ("**1.** Boil\n**2.** Wait", ""),
        ("Boil water and wait.", "no list"),
        ("- Boil\n- Wait", "no list"),
        ("First 1. boil, then 2. wait.", "no list"),  # items on lines of their own
        ("It takes\n1.5 minutes\n2.5 minutes", "no list"),
        ("1. Boil water and wait.", "a single item"),
        ("2. Boil\n3. Wait", "does not begin with 1"),
        ("1. Boil\n1. Wait", "numbers do not count up"),
        ("1. \n2. \n3. ", "no list"),  # bare numbers
        ("1. 2\n2. 3", "no list"),
        ("a numbered list: 1 2 3", "no list"),
    ],
)
def test_numbered_list(text: str, reason: str) -> None:
    assert check("numbered-list", text) == reason


def test_a_list_that_was_cut_is_one_still() -> None:
    assert check("numbered-list", LIST, finish_reason="length") == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (FRENCH, ""),
        ("L'eau est un liquide que nous buvons.", ""),
        ("Le soleil chauffe la mer et les nuages se forment.", ""),
        ("Un virus est une petite chose qui rend les gens malades.", ""),
        ("Boil the egg in water for ten minutes and eat it.", "not French"),
        ("Bonjour! Boil the egg in water and eat it. Merci, au revoir!", "not French"),
        (
            'In French one says "le chat est dans la maison et il dort".',
            "not French",
        ),  # a quotation is not a reply
        ("Bien sûr, mon ami, voilà quoi!", "not French"),  # no sentence to be sure of
        ("El perro está en la casa y no quiere que se coma un pan.", "not French"),
        ("La casa è grande e la porta si apre con una chiave di ferro.", "not French"),
        ("Der Hund ist in dem Haus und wartet auf das Essen.", "not French"),
        ("le les des une et est dans", ""),  # words alone are beyond a rule of words: the topic guard sees it
        ("Oui.", "too few words"),
        (f"{FRENCH} The egg is in the water and you can eat it when it is done.", "not French"),
        (f"{FRENCH} {FRENCH} The egg is in the water and you can eat it when it is done.", "half English"),
        ("Answer in French: le", "not French"),
    ],
)
def test_in_french(text: str, reason: str) -> None:
    assert check("in-french", text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Boil water. Add the egg. In short, boil it for ten minutes.", ""),
        ("Boil water.\n\nIn short: boil the egg well.", ""),
        ("Boil water.\n\n**In short:**\nBoil the egg for ten minutes.", ""),
        ("Boil water. *In short*, boil the egg well.", ""),
        ("In short, boil it for ten minutes.", "nothing comes before the end"),
        ("In short, boil it. Then wait for ten minutes.", "does not end with In short"),
        ("Boil it in short bursts. Then wait.", "does not end with In short"),
        ("Boil water. Cut the string in short pieces.", "does not end with In short"),
        ("Boil water. In short.", "In short, and nothing"),
        ("Boil water. In short, yes.", "In short, and nothing"),
        ("Boil water. In shorthand this is one word.", "does not end with In short"),
        ('You want "In short" at the end. I will do that.', "does not end with In short"),
    ],
)
def test_in_short(text: str, reason: str) -> None:
    assert check("in-short", text) == reason


def test_a_reply_that_was_cut_has_no_end() -> None:
    assert check("in-short", "Boil water. In short, boil it for ten", finish_reason="length") == "cut off"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("My friend, boil the egg.", ""),
        ("Hello my friend! Boil the egg.", ""),
        ("Well, my friend, boil the egg.", ""),
        ("Boil the egg, my dear friend.", ""),
        ("Boil it.\nGood luck, my friend", ""),
        ("Boil the egg.", "no my friend"),
        ("My friends, boil the egg.", "no my friend"),
        ("Boil it, myfriend.", "no my friend"),
        ("My friend Tom boils eggs.", "speaks of a friend"),
        ("I ate an egg with my friend.", "speaks of a friend"),
        ("Yesterday, my friend's egg broke.", "speaks of a friend"),
        ('You asked to be called "my friend" here.', "speaks of a friend"),
    ],
)
def test_my_friend(text: str, reason: str) -> None:
    assert check("my-friend", text) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (KIND, ""),
        ("A star is a big ball of hot gas. It shines at night!", ""),
        ("A magnet is a toy that can pull.", "one sentence"),
        (f"{KIND} It is fun.", "more than two sentences"),
        ("A magnet can pull. It likes", "not a whole sentence"),
        ("Yes. It pulls things.", "too few words"),
        (f"It pulls. {' '.join(['and'] * 23)}.", "too many words"),
        (
            "Photosynthesis transforms electromagnetic radiation. Chloroplasts accumulate carbohydrates.",
            "long words",
        ),
        ("1. It pulls. 2. It likes iron.", "a list or a heading"),
    ],
)
def test_five_year_old(text: str, reason: str) -> None:
    assert check("five-year-old", text) == reason


def test_two_sentences_that_were_cut_are_not_two() -> None:
    assert check("five-year-old", KIND, finish_reason="length") == "cut off"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Step 1: Boil water.\nStep 2: Add the egg.", ""),
        ("Here is how.\n\n**Step 1:** Boil water.", ""),
        ("### Step 1\nBoil water.", ""),
        ("step 1 - boil water", ""),
        ("Boil water.", "no step"),
        ("In step 1: boil water.", "no step"),
        ("Do not skip Step 1: it matters.", "no step"),
        ("Step one is to boil.", "no step"),
        ("Step 10: Boil water.", "does not begin with Step 1"),
        ("Step 2: Wait.\nStep 1: Boil.", "does not begin with Step 1"),
        ("Step 1:", "an empty step"),
        ("Step 1: 2 3", "an empty step"),
        ("Step 1 of the plan was bad.", "no step"),
    ],
)
def test_step_one(text: str, reason: str) -> None:
    assert check("step-one", text) == reason
