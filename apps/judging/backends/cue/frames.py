"""The frames in which people put a wish, as written (in any case); the group holds what is wished for."""

import re

LEAD = re.compile(
    r"^(?:(?:next time|for next time|this time|from now on|in future|in the future|for the future|thank you|"
    r"good start|nice try|no offense|to be honest|come on|and|so|then|now|also|ok|okay|oh|ah|well|please|pls|but|hey|look|sorry|"
    r"maybe|perhaps|instead|great|thanks|hmm+|hm+|um|erm|ugh|meh|however|no(?=\s*[,.;:!\u2013\u2014-])|nope|nah|yes|yep|yeah|honestly|actually|seriously|whoa|wow|try again|again)"
    r"(?:[\s,.:;!\u2013\u2014-]+|$))+",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"[\s,;:\u2013\u2014-]*(?:\b(?:please|pls|instead|next time|this time|from now on|in future|in the future|ok|okay|thanks|thank you|for me|tops|here|"
    r"then|if possible|if you can|if you could|will you|would you|that is all|that's all|again|anyway|though|too)\b)?[\s.!?…,;:\u2013\u2014-]*$",
    re.IGNORECASE,
)
PRONOUN = r"(?:it|that|this|them|the answer|an answer|your answer|the reply|your reply|a reply|the response|a response|something)"
REQUEST = re.compile(
    r"^(?:(?:can't|won't|couldn't|wouldn't|can|could|would|will|may) you|i (?:need|want|would like|'d like) you to|do you think you could)\s+"
    r"(?:(?:please|just|maybe|perhaps|kindly|possibly|at least|not)\s+)*(.+)$",
    re.IGNORECASE,
)
MIND = re.compile(r"^(?:(?:do|would) you )?mind ((\w+)ing\b.*)$", re.IGNORECASE)
GET = re.compile(
    rf"^(?:can|could|may) (?:i|we) (?:please |just )*(?:get|have|see|do|try) (?:{PRONOUN}\s+)?(.+)$",
    re.IGNORECASE,
)
WISH = re.compile(
    r"^(?:all (?:that )?)?(?:i|we)(?:'d|'m|'ve)?\s+(?:(?:was|were|am|had|have|would|did|do|really|only|just|simply|actually|much|clearly|specifically|already|kind of|have to|think)\s+)*"
    r"(?:ask(?:ed)?|want(?:ed)?|hop(?:ing|ed)|expect(?:ed|ing)?|prefer(?:red)?|rather|need(?:ed)?|mean|meant|said|told you|requested|wish|like|liked|love|looking|have|see)\b"
    rf"\s*(?:for\b|to (?:get|have|see|read)\b|that\b)?[\s,:\u2013\u2014-]*(?:(?:you to|you (?:would|could))\s+)?(?:{PRONOUN}\s+(?=as |in |with |to be |without |only |just ))?(.+)$",
    re.IGNORECASE,
)
YOU_PAST = re.compile(
    r"^you\s+(?:just\s+|only\s+|simply\s+)?(gave|used|wrote|kept|said|made|told|answered|put|listed)\b(.*)$",
    re.IGNORECASE,
)
PRESENT = {
    "gave": "give", "used": "use", "wrote": "write", "kept": "keep", "said": "say", "made": "make",
    "told": "tell", "answered": "answer", "put": "put", "listed": "list",
}  # fmt: skip
SUFFICES = re.compile(
    r"^(.+?)\s+(?:is|are|was|would(?:'ve)?|will|should(?:'ve)?|could(?:'ve)?|might|'s|'d|'ll)\s*(?:have\s+)?(?:be|been)?\s*(?:more than\s+|quite\s+|just\s+|already\s+|much\s+|a lot\s+)*"
    r"(?:plenty|enough|sufficient|fine|do|do it|do nicely|done(?: it| nicely)?|suffice|all (?:that )?(?:i|we)\b.*|what (?:i|we)\b.*|better|nice|nicer|great|good|perfect|ideal|lovely|helpful|more helpful|easier|preferable|appreciated|welcome|best)"
    r"(?:\s+(?:for (?:me|now|this|us)|to (?:read|follow|understand|use|digest)|really|thanks))*$",
    re.IGNORECASE,
)
SHOULD_BE = re.compile(
    rf"^(?:{PRONOUN}|your (?:answers|replies|responses)|answers|replies|you)\s+(?:should|could|must|ought to|needs? to|has to|have to|can)\s+(?:just\s+|only\s+)*(?:have\s+)?(?:be|been)\s+(.+)$",
    re.IGNORECASE,
)
COULD_BE = re.compile(rf"^(?:can|could|should|may)(?:n't)? {PRONOUN} be (.+)$", re.IGNORECASE)
SHOULD = re.compile(
    r"^you (?:should|must|need to|have to|ought to)\s+(?:just\s+|only\s+|always\s+)*(?!have\b|be\b)(.+)$",
    re.IGNORECASE,
)
ENOUGH = re.compile(r"^(.+?)\s+suffices?\b.*$", re.IGNORECASE)
WE = re.compile(r"^(?:(?:can|could|shall) we|let's|let us)\s+(?:please\s+|just\s+)*(.+)$", re.IGNORECASE)
HAPPIER = re.compile(
    r"^i(?:'d| would| 'd)(?:'ve| have)?\s+(?:be|been|feel|felt)\s+(?:much\s+|a lot\s+|more\s+)*\w+\s+with\s+(.+)$",
    re.IGNORECASE,
)
IT = re.compile(r"^(?:it|them|things|that|this)\s+(\w+)$", re.IGNORECASE)
MY_ANSWERS = re.compile(r"^my (?:answers?|replies|reply|responses?) (.+)$", re.IGNORECASE)
ALL_I = re.compile(r"^(.+?)\s+(?:is|was|'s)\s+all (?:that )?(?:i|we)\b.*$", re.IGNORECASE)
TOO = re.compile(
    r"\b(?:too|overly|so|such an?|awfully|really|very)\s+(?:much\s+|many\s+)?([a-z-]+)", re.IGNORECASE
)
FORGOT = re.compile(
    r"^you(?:'ve| have)?\s+(?:completely\s+|just\s+|again\s+)*(?:forgot|missed|left out|skipped|ignored|omitted|overlooked|didn't (?:say|mention|include)|did not (?:say|mention|include))\s+(.+)$",
    re.IGNORECASE,
)
LIKE = re.compile(r"^(?:you|it|this|that|your \w+)\b.*?\blike (.+)$", re.IGNORECASE)
NOT_ENOUGH = re.compile(
    r"^(?:that is |it is |there is )?(?:not (?:nearly |quite )?enough|too little|too few) (.+)$",
    re.IGNORECASE,
)
ITSELF = re.compile(
    r"^(make|keep|cut|trim|shorten|condense|simplify|format) (?:it|this|that)\b", re.IGNORECASE
)
ANEW = re.compile(
    rf"^(?:say|put|write|phrase|express|give|tell|word|explain|sum(?: up)?|summari[sz]e|describe)\s+(?:me\s+)?{PRONOUN}\s+(?:up\s+)?(?:all\s+)?"
    r"(?:(?:to|for)\s+(?:me|us)\s+)?(in|into|as|with|for|to)\s+(?!the\b|me\b|us\b)(.+)$",
    re.IGNORECASE,
)
"""The earlier answer in another form, "say it in one line"; the groups are how, and the form."""
TELL_ME = re.compile(r"^(?:tell|give)\s+me\s+(in|as|with)\s+(?!the\b)(.+)$", re.IGNORECASE)
"""The same with nothing named: "tell me in one line"."""
REASON = re.compile(
    r",\s+(?:(?:that|it|this)(?:'s|\s+(?:is|would be|makes|helps|reads))|i(?:'m|\s+(?:can\s?not|can't|do not|don't|am|have|read|find|lose)))\b.*$"
    r"|\s+(?:because|since (?:i|we|it|that|this|my|he|she|they))\b.*$",
    re.IGNORECASE,
)
"""Why an order is given: "…, that is easier for me"."""
NO_MORE = re.compile(r"^(?:no|without|zero)\s+(?:more\s+|any\s+|so many\s+|so much\s+)?(.+)$", re.IGNORECASE)
LACKS = re.compile(
    r"^(?:no|without|zero)\s+(?:(?:more|any|real|clear|apparent|sense of|kind of)\s+)*(order|structure|depth|nuance)"
    r"(?:\s+(?:in|to|at|here|there|anywhere|whatsoever)\b.*)?$",
    re.IGNORECASE,
)
"""What no answer is asked to be without: "no order in it" says what this one lacks."""
NEEDLESS = re.compile(
    r"^(?:no|zero)\s+(?:more\s+|any\s+)?(.+?)\s+(?:is\s+|are\s+)?(?:needed|necessary|required|wanted|asked for|called for)"
    r"(?:\s+(?:for|in|here|at all|this)\b.*)?$"
    r"|^(?:there(?:'s| is)\s+)?no need (?:for|of)\s+(?!(?:all\s+)?(?:the|your|those|these|that)\b)(.+)$",
    re.IGNORECASE,
)
"""What an answer may do without: "no list needed"."""
OF_IT = re.compile(
    r"\s+(?:in|to|about|of|with)\s+(?:it|this|that|there|here|them|(?:the|your|this|that)\s+(?:answer|reply|response|text|list))$"
    r"|\s+(?:there|here|anywhere)$",
    re.IGNORECASE,
)
"""Points back at the reply: "no examples in there"."""
WITHOUT_ONE = re.compile(r"^answer without ([\w-]+)\.$", re.IGNORECASE)
COMPARED = re.compile(
    r"^(?:(?:much|a bit|a little|way|far|even|slightly|a lot)\s+)?(more|less|fewer)\s+(.+)$", re.IGNORECASE
)
COMPARATIVE = re.compile(
    r"^(?:(?:much|a bit|a little|way|far|even|slightly|a lot|something|make it)\s+)*(\w+er)(?:\s+(?:answers?|repl(?:y|ies)|responses?|ones?|version))?$",
    re.IGNORECASE,
)

OPPOSITE = {
    "long": "shorter", "wordy": "shorter", "verbose": "shorter", "lengthy": "shorter", "many": "shorter", "much": "shorter",
    "detailed": "shorter", "repetitive": "shorter", "complicated": "simpler", "complex": "simpler", "technical": "simpler",
    "difficult": "simpler", "hard": "simpler", "advanced": "simpler", "confusing": "clearer", "vague": "more specific",
    "general": "more specific", "generic": "more specific", "short": "longer and more detailed", "brief": "longer and more detailed",
    "terse": "longer and more detailed", "formal": "less formal", "stiff": "less formal", "casual": "more formal",
}  # fmt: skip
BULKY = {"long", "lengthy", "wordy", "verbose", "technical", "complicated", "formal"}  # alone, a complaint
BASE = {"rewrite": "write", "redo": "do", "rephrase": "phrase", "reword": "word", "retry": "try"}
ARTICLES = {
    "a",
    "an",
    "the",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "just",
    "only",
    "single",
    "some",
    "something",
    "at",
    "fewer",
    "less",
    "no",
    "any",
    "my",
    "under",
    "as",
    "in",
    "with",
    "to",
    "without",
    "by",
    "like",
    "for",
    "using",
}
QUALIFIES = {"not", "no", "without", "just", "only", "more", "less", "fewer", "nothing"}
# a noun phrase begins with none of these, whatever follows
NO_NOUNS = {
    "been", "be", "have", "of", "know", "see", "has", "had", "is", "was", "are", "were", "do", "does", "did", "i", "you", "we", "he",
    "she", "they", "that", "this", "it", "these", "those", "not", "to", "what", "how", "why", "when", "where", "who",
    "if", "because", "and", "or", "but", "so", "can", "could", "would", "should", "will",
}  # fmt: skip
ADVERBS = {"just", "only", "simply", "really", "rather", "actually", "please", "maybe", "perhaps"}
PREPOSITIONS = {"for", "in", "with", "without", "as", "like", "by", "using", "to", "under", "at", "within"}
