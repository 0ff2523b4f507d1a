"""Whom and what a clause speaks of: the reply, or something of the user's own that is no fault of it.

"My essay is too long, how do I shorten it?" finds fault with an essay. Read as a complaint it would teach the
policy to be short, so such clauses carry no cue and give no hint; neither do words that are only quoted.
"""

import re

from apps.judging.backends.cue import lexicon as lex
from apps.judging.backends.cue import signs
from apps.judging.backends.cue.reading import Clause, plain, sentences, stem, topic, words

# a quotation has an end nearby, which also bounds the search for it
_QUOTED = re.compile(
    r"\"[^\"\n]{0,600}\"|\u201c[^\u201d\n]{0,600}\u201d|\u00ab[^\u00bb\n]{0,600}\u00bb|(?<!\w)['\u2018].{1,600}?['\u2019](?!\w)"
)
_OWNED = r"(?:my|our|his|her|their|someone's|somebody's|people's)"
_OWNER = re.compile(rf"^(?:all |both |one of |some of )?{_OWNED} (?:\w+ )?([\w'-]+)")
_PERSON = re.compile(
    rf"^(?:the|an?|another|this|that|one|some|most) (?:\w+ )?(?:{'|'.join(sorted(lex.PEOPLE))})s?\b"
)
_THIRD = re.compile(r"^(?:he|she|someone|somebody|people|everybody|everyone) (?!else)")
_THING = re.compile(r"^(?:the|this|that|these|those) ([\w'-]+) (?:is|was|are|were|has|had|looks?|keeps?)\b")
_TASTE = re.compile(
    r"^i (?:really |just |actually |also |absolutely )*(?:hate|dislike|love|like|enjoy|(?:do|can) not (?:really |even )?(?:like|eat|stand|enjoy|want))"
    r" (?!(?:it|that|this|them|these|those|you|your|the|how|when|what|to|my|an?)\b)([\w'-]+)"
)
_OWN_TASK = re.compile(
    r"^i (?:am|was|have|need|want|had|got|plan|will|must|should|would like)(?: \w+)? (?:to )?"
    r"(?:write|writing|give|giving|finish|finishing|submit|read|reading|prepare|preparing|edit|editing|study)"
    rf" (?:an?|{_OWNED}|some) (?!\w* ?(?:answer|reply|response|list|sentence)\b)"
)
_MINE = re.compile(rf"\b{_OWNED} (?:\w+ )?([\w'-]+)")
_REPLY = re.compile(
    r"\b(?:you|your|yours|yourself|that|this|it|them|(?:the|an?) (?:answer|reply|response|explanation))\b"
)
_ADDRESSED = re.compile(
    r"\b(?:you|your|yours|yourself|(?:the|an?|this|that) (?:answer|reply|response|explanation))\b"
)
_SPEAKS = re.compile(r"\b(?:said|says|wrote|writes|told|thinks|complains|complained|calls|called)\b")
_BACK = re.compile(r"\b(?:it|them|they|he|she|him|her|his|their|its|this|that|these|those)\b")


def without_quotes(text: str) -> str:
    """Return text without what is quoted in it; a text that is one quotation stays."""
    rest = _QUOTED.sub(" ", text)
    return rest if words(rest) else text


class Subjects:
    """Follows a message clause by clause and says which of them speak of something else than the reply."""

    def __init__(self, said: str, *, asked: str) -> None:
        self._elsewhere = False
        first = words(signs.LEADING.sub("", plain(asked)))[:1]
        # what was ordered is what the reply holds: "my essay" is then the reply
        ordered = bool(first) and first[0] not in lex.QUESTION_WORDS | (
            lex.AUXILIARIES - {"can", "could", "would", "will"}
        )
        self._ordered = topic(asked) if ordered else frozenset()
        self._asks = any(_is_own_question(sentence) for sentence in sentences(said))

    def elsewhere(self, clause: Clause) -> bool:
        """Whether this clause, in the light of those before it, is about something else than the reply."""
        text = signs.LEADING.sub("", clause.plain)
        asks = self._asks_about_own(clause, text)
        if asks or self._begins(text):
            # what comes next is about it if there was something to say of it: "I'm on my phone" says nothing
            self._elsewhere = asks or self._elsewhere or _finds_fault(text)
            return True
        if not self._elsewhere:
            return False
        found = words(text)
        bare = signs.REQUEST.sub(" ", text)
        if not found or _ADDRESSED.search(bare):
            self._elsewhere = not _ADDRESSED.search(bare)
            return False
        return (
            found[0] in lex.QUESTION_WORDS | lex.AUXILIARIES | (lex.VERBS - {"stop", "avoid"})
            or clause.asks
            or bool(_BACK.search(bare))
            or bool(signs.REQUEST.search(text))
        )

    def _begins(self, text: str) -> bool:
        owned = _OWNER.match(text)
        if owned is not None:
            return (
                not set(words(owned.group())) & lex.OF_THE_READER
                and self._foreign(owned.group())
                and not _REPLY.search(text)
            )
        if _PERSON.match(text) or _THIRD.match(text):
            return not _REPLY.search(text) or (
                self._asks and not text.rstrip().endswith("?") and not _ADDRESSED.search(text)
            )
        taste = _TASTE.match(text)
        if taste is not None:
            return not any(word in lex.FORMS | lex.BULK for word in words(text)) and not _REPLY.search(text)
        thing = _THING.match(text)
        if thing is not None:
            return (
                self._asks
                and thing.group(1) not in lex.FORMS | lex.OF_A_REPLY | lex.STOPWORDS
                and self._foreign(thing.group(1))
            )
        if _OWN_TASK.match(text):
            return not _ADDRESSED.search(text)
        mine = _MINE.search(text)
        return (
            text.startswith("i ")
            and mine is not None
            and self._foreign(mine.group())
            and not set(words(mine.group())) & lex.OF_THE_READER
            and not signs.STRONG_WISH.search(text)
            and not _REPLY.search(text)
        )

    def _asks_about_own(self, clause: Clause, text: str) -> bool:
        """Whether a question or a request is about something of the user's own: "help me with my essay"."""
        found, mine = words(text), _MINE.search(text)
        if (
            not found
            or mine is None
            or set(words(mine.group())) & lex.OF_THE_READER
            or not self._foreign(mine.group())
            or signs.CALLS_ME.search(text)
        ):
            return False
        asks = found[0] in lex.QUESTION_WORDS | lex.VERBS or clause.asks or bool(signs.REQUEST.search(text))
        return asks and not _REPLY.search(signs.REQUEST.sub(" ", text)) and not signs.REPROACH.search(text)

    def _foreign(self, phrase: str) -> bool:
        """Whether a noun is not what was ordered."""
        return not {stem(word) for word in words(phrase)} & self._ordered


def _finds_fault(text: str) -> bool:
    return bool(
        signs.EXCESS.search(text) or _SPEAKS.search(text) or set(words(text)) & (lex.BLAME | lex.BULK)
    )


def _is_own_question(sentence: str) -> bool:
    """Whether a sentence asks something new: "how do I …", "what else …", and not "why did you …"."""
    text = signs.LEADING.sub("", plain(sentence))
    found = words(text)
    asks = bool(found) and sentence.rstrip().endswith("?")
    return asks and not _ADDRESSED.search(signs.REQUEST.sub(" ", text)) and not signs.REPROACH.search(text)
