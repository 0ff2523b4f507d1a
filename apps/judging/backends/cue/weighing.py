"""Weigh what a user said after a reply: each clause adds cues, for and against.

The cues are general: praise and blame and their negations, excess ("too …"), wishes and directives about the
answer's form, requests to do it again, the same question asked again. What a new question or a new task says of
its own topic is no cue.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.judging.backends.cue import lexicon as lex
from apps.judging.backends.cue.reading import Clause, clauses, plain, sentences, stem, topic, words


@dataclass(frozen=True, slots=True)
class Cue:
    """Something seen, and how much it speaks for (+) or against (-) the reply."""

    name: str
    weight: float


_GREETING = re.compile(r"\bgood (?:morning|evening|afternoon|night|day)\b")
_LEADING = re.compile(
    r"^(?:(?:next time|for next time|this time|next question|from now on|in future|in the future|thank you|"
    r"and|so|then|now|also|ok|okay|oh|ah|well|please|but|hey|look|sorry|next|just|maybe|instead|great|good|thanks|"
    r"hmm|hm|um|no|yes|yep|yeah|honestly|actually)\b[,:]?\s*)+"
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will|may) (?:not )?(?:you|i|we)\b|\b(?:do|would) you mind\b|^mind \w+ing\b|\bi (?:need|want) you to\b|\blet us\b"
)
_ABOUT_REPLY = re.compile(
    r"\b(?:you|your|yours|that|this|instead|again|(?:the|an?) (?:answer|reply|response|explanation|text)|"
    r"next time|from now on|in future|every time|always)\b"
)
_IT = re.compile(r"\b(?:it|them|these|those|one|ones)\b")
_WISH = re.compile(
    r"\b(?:i|we) (?:\w+ ){0,3}?(?:asked|wanted|want|hoping|hoped|expected|expecting|prefer|preferred|rather|need|needed|meant|"
    r"said|told you|requested|wish|wished)\b|\b(?:i|we) would (?:have )?(?:like|liked|love|loved)\b|"
    r"\ball (?:that )?i (?:\w+ )?(?:need|want|wanted|needed|asked)|\bmore than i (?:\w+ )?(?:need|want|asked)|"
    r"\b(?:should|could|ought to|might) have (?:been|had|said|used|just)?|\bsupposed to\b|\bmeant to be\b"
)
_STRONG_WISH = re.compile(
    r"\bi (?:\w+ ){0,2}?(?:asked|meant|said|told you|requested)\b|\bi (?:was|am|were) (?:\w+ )?(?:hoping|expecting)\b|"
    r"\b(?:i|we) (?:only|just|simply) (?:\w+ )?(?:want|wanted|need|needed|asked)\b|\b(?:i|we) (?:had )?(?:expected|hoped|wanted)\b|"
    r"\bi would (?:rather|prefer|have)\b|\bi prefer\b|\ball (?:that )?i (?:\w+ )?(?:need|want|wanted|needed|asked)|"
    r"\bmore than i\b|\b(?:should|could) have (?:been|had|said|used|just)\b|\bsupposed to\b"
)
_JUST_RIGHT = re.compile(
    r"\b(?:just|exactly|precisely) (?:what |that )?i (?:was |am )?(?:\w+ )?(?:need|needed|want|wanted|asked|looking|hoping|meant|after)\b"
    r"|\bthat is (?:just |exactly )?what i (?:\w+ )?(?:need|needed|want|wanted|asked|meant)\b|\bmore like it\b|\bgood to know\b|\b(?:could|can|would) not (?:\w+ )*better\b|\b(?:is|was|much|sounds|looks|way|lot|far) better\b|"
    r"\bthat is it\b(?! all)|\bclear(?:s|ed) (?:it|that|things|this) up\b|\bmake(?:s)? (?:\w+ )?sense\b|\bnever knew\b|"
    r"\blearned (?:something|a lot)\b|\bgot it\b|\bi see\b|\bwell done\b|\bnailed it\b|\bknow your stuff\b|\blooks good\b|"
    r"\bi (?:will|would|am going to) (?:\w+ )?(?:use|try|watch|read|take|do|go with|keep|buy|cook|make|save|remember|share) (?:it|that|this|them)\b|"
    r"\btell me more\b|\byou are (?:right|the best|a star|awesome|great|correct)\b|\bwork(?:s|ed)? for me\b|\bgood (?:enough|point|idea|one)\b"
)
_EXCESS = re.compile(
    r"\b(?:way |far |much |a bit |a little |rather |just |still |simply )*\b(?:too|overly) ([a-z-]+)"
)
_SO = re.compile(r"\b(?:so|such an?|very|really|awfully|pretty|quite|rather) ([a-z-]+)")
MUCH = re.compile(
    r"\b(?:a (?:bit|little|lot|tad)|way|far|so|too|that is|awfully) (?:too )?much\b|\bon and on\b|\bwall of\b|"
    r"\b(?:so|too|that) many\b|\bget(?:ting)? to the point\b|\ball (?:of )?(?:that|this)\b.{0,20}\b(?:text|words|read)\b|\btl;dr\b|\btldr\b|"
    r"\bno more\b(?! questions)|\bnothing more\b|\bway more\b|\ba lot (?:of text|to read)\b|\blonger than\b|\bfar more\b|\bcut (?:it|half|this|that)\b"
)
_LITTLE = re.compile(
    r"\bnot (?:nearly |quite )?(?:enough|\w+ enough)\b|\bleft out\b|\btoo little\b|\bmore details?\b"
)
_NOT_IT = re.compile(
    r"\b(?:that|this|it|you|which|the (?:answer|reply|code|link|tone|word|\w+)|your \w+) "
    r"(?:really |just |still |simply |even |certainly |definitely )?(?:is|was|are|were|does|did|do|has|have|had|can|will|would|should) "
    r"(?:really |just |simply |still |even |at all )?not\b|\bnot (?:at all |really |quite |exactly )?(?:what|it|right|quite|true|the case)\b|\bthat is not\b"
)
_I_NOT = re.compile(
    r"\bi (?:do|can|could|did|am|was|would|have) (?:really |still |even |just |simply )?not (?:really |even |quite |still )?"
    r"(?:understand|read|get|follow|want|need|like|see|use|agree|think|believe|ask|asked|looking|open|trust|speak|eat|recall|remember asking)\b"
)
_CONFUSED = re.compile(
    r"\b(?:over my head|hard to (?:follow|read|understand|parse)|lost me|glaz(?:e|ed) over|do not get (?:it|this|that)|"
    r"what do you mean|no sense|make (?:any )?sense of|in the dark|no idea what)\b"
)
_AGAIN = re.compile(
    r"\b(?:once more|try (?:again|once)|do (?:it|this|that) over|start over|one more time|do over|another (?:go|try|one|attempt))\b"
)
_ELSE = re.compile(r"\b(?:something|anything|someone|somewhere) (?:else|different)\b")
_TOPIC_CHANGE = re.compile(r"\b(?:talk|chat|speak|switch|move on|discuss|know) (?:\w+ )?(?:about|to|on)\b")
_NO_TROUBLE = re.compile(
    r"\b(?:no|not a|not any|without|zero|never a|nothing) (?:more |other |further |single )?(?:complaints?|problems?|worries|issues?|questions?|need|changes?|"
    r"mistakes?|errors?|wrong|bad|thanks|doubt|rush|notes)\b|\bnot bad\b|\bnot wrong\b|\bcan not complain\b"
)
_CONDITIONAL = re.compile(r"\b(?:would|could|might) (?:be|have been|work|do|suit|help|suffice|go)\b")
_SUFFICES = re.compile(
    r"\b(?:is|are|would be|will be|was|would have been) (?:more than |quite |just )?(?:plenty|enough|sufficient|fine)\b|\b(?:will|would) do\b|\bsuffices?\b"
)
_REPROACH = re.compile(
    r"^(?:and |but |so )?(?:why (?:are|did|do|is|does|would|can) (?:you|this|that|it|your)|are you (?:even|still|always|just)|did you (?:even|not)|do you (?:even|not|always))\b|^why (?:not|are not|is not)\b"
)
_FORBIDS = re.compile(r"^(?:do not|stop|quit|avoid|never)\b(?! mind| worry)")
_BE_NOT = re.compile(r"\b(?:is|are|was|were|has|have|does|do|did|should) not\b|^not an? \b")


# stems of words that speak of answers, not of a topic
_OF_ANSWERS = frozenset(
    stem(word)
    for word in lex.FORMS
    | lex.FORM_VERBS
    | lex.WISHES
    | lex.THANKS
    | lex.ASSENT
    | lex.SUFFICE
    | lex.REDO
    | lex.BULK
)


def weigh(said: str, *, asked: str, reply: str) -> list[Cue]:
    """Return the cues in what was said after `reply`, which answered `asked`."""
    known = topic(asked) | topic(reply)
    found: list[Cue] = []
    for sentence in sentences(said):
        praised = False
        for clause in clauses(sentence):
            cues = _clause_cues(clause, asked=asked, known=known, praised=praised)
            praised = praised or any(cue.weight > 0 for cue in cues)
            found.extend(_weakened(cues, clause))
    if _asks_again(said, asked):
        found.append(Cue("same question again", -2.5))
    if found and plain(said).count("?!") + plain(said).count("!?") + plain(said).count("??"):
        found.append(Cue("insistent punctuation", -0.5))
    return found


def is_new_task(clause: Clause, known: frozenset[str]) -> bool:
    """Whether a clause asks for something of its own: its words are about a topic, not about the reply."""
    text = _LEADING.sub("", clause.plain).replace("thank you", "thanks")
    found = words(text)
    first = found[0] if found else ""
    if (
        _JUST_RIGHT.search(clause.plain)
        or _REPROACH.search(text)
        or _FORBIDS.search(text)
        or (first in lex.REDO and _IT.search(text))
    ):
        return False
    if clause.introduces and first in lex.VERBS - lex.FORM_VERBS:
        return True
    if first in lex.QUESTION_WORDS or (first in lex.AUXILIARIES and clause.asks and not _REQUEST.match(text)):
        formal = bool(_IT.search(text)) and any(word in lex.FORMS for word in found)
        return not formal and not _ABOUT_REPLY.search(text)
    if first in lex.VERBS or _REQUEST.search(text):
        return bool(novel(text, known)) and not _ABOUT_REPLY.search(_REQUEST.sub("", text))
    return False


def novel(text: str, known: frozenset[str]) -> frozenset[str]:
    """Return the stems of a clause's topic words that neither the question nor the reply had."""
    return topic(text) - _OF_ANSWERS - known


def speaks_of_form(clause: Clause, known: frozenset[str]) -> bool:
    """Whether a clause says how an answer should be: words of form, and no topic of its own."""
    formal = [word for word in clause.words if word in lex.FORMS]
    comparing = re.search(
        r"\b(?:more|less|fewer) (?:\w+ )?\w+|\b(?:be|make|sound|keep) (?:\w+ ){0,2}\w+er\b", clause.plain
    )
    if not formal and not (comparing and (clause.words[0] in lex.VERBS or _REQUEST.search(clause.plain))):
        return False
    new = novel(clause.plain, known)
    about = bool(_ABOUT_REPLY.search(clause.plain) or _IT.search(clause.plain))
    return not new or (about and len(new) <= len(formal) + 1)


def _clause_cues(clause: Clause, *, asked: str, known: frozenset[str], praised: bool) -> list[Cue]:
    text = _GREETING.sub(" ", clause.plain)
    if is_new_task(clause, known):
        return _before_the_task(clause)
    found: list[Cue] = []
    found += _praise(text)
    found += _blame(text, known=known, asked=asked)
    found += _wishes(clause, text, known, praised=praised or any(cue.weight > 0 for cue in found))
    return found


def _before_the_task(clause: Clause) -> list[Cue]:
    """Return the cues of the words that lead over to a new question: "great, and …", "thanks, now …"."""
    leading = _LEADING.match(clause.plain)
    if leading is None:
        return []
    first = words(leading.group())
    if any(word in lex.PRAISE or word in lex.THANKS for word in first if word != "good" or len(first) == 1):
        return [Cue("thanks", 1.5)]
    return [Cue("assent", 0.5)] if any(word in lex.ASSENT for word in first) else []


def _praise(text: str) -> list[Cue]:
    found: list[Cue] = []
    if _JUST_RIGHT.search(text) and not re.search(
        r"\b(?:not|never|no|nor) (?:\w+ )?(?:make|makes|good|more like|what|exactly|got|any)\b", text
    ):
        found.append(Cue("just right", 2.0))
    if _NO_TROUBLE.search(text):
        found.append(Cue("no complaint", 1.5))
    tokens = words(_NO_TROUBLE.sub(" ", text))
    if any(token in lex.THANKS for token in tokens) or re.search(r"\bthank you\b", text):
        found.append(Cue("thanks", 1.5))
    if _CONDITIONAL.search(text) or _EXCESS.search(text):
        return found
    for index, token in enumerate(tokens):
        praise = token in lex.PRAISE or token in lex.WORKS
        praise = praise or (token in lex.PRAISE_OF_IT and _has_object(tokens[index + 1 :]))
        if not praise:
            continue
        if _negated(tokens, index):
            found.append(Cue(f"not {token}", -1.8))
        elif token not in ("right", "clear", "easy", "answers", "pass", "help", "super") or _ascribed(
            tokens, index
        ):
            found.append(Cue(token, 1.5))
        if len(found) >= 3:
            break
    if not found and tokens and tokens[0] in lex.ASSENT:
        found.append(Cue("assent", 0.5))
    return found


def _has_object(after: Sequence[str]) -> bool:
    return not after or after[0] in {"it", "that", "this", "them", "your", "how", "the", "these", "very"}


def _ascribed(tokens: Sequence[str], index: int) -> bool:
    """Whether a word is said of something ("that is clear") or stands alone, and names no wish."""
    if tokens[index] == "right" and index + 1 < len(tokens):
        return False
    before = tokens[max(0, index - 3) : index]
    return not before or any(
        word in {"is", "was", "are", "and", "very", "so", "really", "that", "it", "tests", "this"}
        for word in before
    )


def _negated(tokens: Sequence[str], index: int) -> bool:
    return any(word in lex.NEGATIONS for word in tokens[max(0, index - 4) : index])


def _blame(text: str, *, known: frozenset[str], asked: str) -> list[Cue]:
    found: list[Cue] = []
    rest = _NO_TROUBLE.sub(" ", text)
    tokens = words(rest)
    if _CONFUSED.search(rest) or any(
        t in lex.CONFUSION and not _negated(tokens, i) for i, t in enumerate(tokens)
    ):
        found.append(Cue("confusion", -2.0))
    too = _EXCESS.search(rest)
    if too and too.group(1) not in lex.KIND:
        found.append(Cue(f"too {too.group(1)}", -2.0))
    elif too:
        found.append(Cue(f"too {too.group(1)}", 1.0))
    so = _SO.search(rest)
    if so and (
        so.group(1) in lex.BULK or so.group(1) in {"long", "formal", "complicated", "technical", "many"}
    ):
        found.append(Cue(f"so {so.group(1)}", -1.5))
    if MUCH.search(rest):
        found.append(Cue("too much", -2.0))
    if any(token in lex.BULK for token in tokens):
        found.append(Cue("bulk", -1.5))
    if _LITTLE.search(rest):
        found.append(Cue("too little", -2.0))
    for index, token in enumerate(tokens):
        if token in lex.BLAME and not _negated(tokens, index):
            found.append(Cue(token, -1.8))
            break
    if (
        _NOT_IT.search(rest)
        and not _JUST_RIGHT.search(rest)
        and not re.search(r"\bnot (?:know|mind|realise|realize|aware)\b", rest)
    ):
        found.append(Cue("not so", -1.8))
    elif _I_NOT.search(rest) and not re.search(r"\bno longer\b", rest):
        found.append(Cue("i do not", -1.8))
    elif tokens and tokens[0] in lex.NEGATIONS - {"without", "never", "hardly", "barely"}:
        found.append(Cue(tokens[0], -1.3))
    elif _BE_NOT.search(rest) and topic(rest) & known:
        found.append(Cue("denial", -1.8))
    if re.search(r"\byou (?:\w+ )?(?:" + "|".join(sorted(lex.YOU_ERR)) + r")\b", rest) and not re.search(
        r"\byou (?:\w+ )?(?:never|always) (?:fail|disappoint)", rest
    ):
        found.append(Cue("you …", -1.8))
    if tokens and tokens[0] in lex.GROANS:
        found.append(Cue(tokens[0], -1.5))
    elif any(token in lex.DOUBT for token in tokens):
        found.append(Cue("doubt", -0.6))
    if tokens and tokens[0] in {"sorry", "still"}:
        found.append(Cue(tokens[0], -0.8))
    if _REPROACH.search(text):
        found.append(Cue("reproach", -1.8))
    return found


def _wishes(clause: Clause, text: str, known: frozenset[str], *, praised: bool) -> list[Cue]:
    found: list[Cue] = []
    form = speaks_of_form(clause, known) and not re.search(r"\bmore about\b", text)
    if (_STRONG_WISH.search(text) and not _JUST_RIGHT.search(text)) or (
        _WISH.search(text) and form and not _JUST_RIGHT.search(text)
    ):
        found.append(Cue("wish", -2.0))
    if _AGAIN.search(text) or any(word in lex.REDO for word in clause.words):
        found.append(Cue("again", -1.6))
    if _ELSE.search(text) and not _TOPIC_CHANGE.search(text):
        found.append(Cue("something else", -1.6))
    start = words(_LEADING.sub("", text))
    directive = bool(start) and (
        start[0] in lex.VERBS or bool(_REQUEST.search(text)) or "please" in clause.words
    )
    if form and directive:
        found.append(Cue("asks for another form", -2.0))
    elif form and (_SUFFICES.search(text) or _CONDITIONAL.search(text)):
        found.append(Cue("says what would do", -2.0))
    elif form and not praised and not _is_plain_question(clause):
        found.append(Cue("names a form", -1.5))
    elif _FORBIDS.search(_LEADING.sub("", text)):
        found.append(Cue("forbids", -1.8))
    elif (
        directive
        and start[0] in lex.FORM_VERBS | {"check", "fix", "correct", "undo"}
        and re.search(r"\byour\b|\brepeat", text)
    ):
        found.append(Cue("asks for repair", -1.6))
    return found


def _is_plain_question(clause: Clause) -> bool:
    first = words(_LEADING.sub("", clause.plain))
    return bool(first) and first[0] in lex.QUESTION_WORDS and not _REPROACH.search(clause.plain)


def _asks_again(said: str, asked: str) -> bool:
    """Whether most of the topic of the question comes back, and little else."""
    before = topic(asked)
    for sentence in sentences(said):
        now = topic(sentence)
        shared = before & now
        if (len(shared) >= 2 or (len(before) == 1 and shared and _same_shape(sentence, asked))) and len(
            shared
        ) >= 0.6 * len(before | (now - _form_stems())):
            return True
    return False


def _same_shape(sentence: str, asked: str) -> bool:
    """Whether two short texts share most of all their words."""
    one, other = set(words(plain(sentence))), set(words(plain(asked)))
    return len(one & other) >= 0.6 * len(one | other)


def _form_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in lex.FORMS)


def _weakened(cues: list[Cue], clause: Clause) -> list[Cue]:
    if not clause.contrasted:
        return cues
    return [Cue(f"{cue.name}, taken back", round(0.3 * cue.weight, 2)) for cue in cues]
