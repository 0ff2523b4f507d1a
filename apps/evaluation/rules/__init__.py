"""The scripted users' tastes: a rule for each, by the user's name. A rule scores; it never feeds a judge."""

from collections.abc import Mapping
from types import MappingProxyType

from apps.evaluation.rules.five_year_old import five_year_old
from apps.evaluation.rules.in_french import in_french
from apps.evaluation.rules.in_short import in_short
from apps.evaluation.rules.my_friend import my_friend
from apps.evaluation.rules.numbered_list import numbered_list, step_one
from apps.evaluation.rules.one_short_sentence import one_short_sentence
from apps.evaluation.rules.published import assistant_teacher, student, teacher
from apps.evaluation.rules.verdict import Rule

PUBLISHED: Mapping[str, Rule] = MappingProxyType(
    {"student": student, "assistant-teacher": assistant_teacher, "teacher": teacher}
)
# the most teachable one first, as measured on the embedded model
TEACHABLE: Mapping[str, Rule] = MappingProxyType(
    {
        "one-short-sentence": one_short_sentence,
        "in-french": in_french,
        "numbered-list": numbered_list,
        "in-short": in_short,
        "my-friend": my_friend,
        "five-year-old": five_year_old,
        "step-one": step_one,
    }
)
RULES: Mapping[str, Rule] = MappingProxyType({**TEACHABLE, **PUBLISHED})
