"""Turns of phrase that carry a cue, looked for in plain text (`reading.plain`)."""

import re

GREETING = re.compile(r"\bgood (?:morning|evening|afternoon|night|day)\b")
LEADING = re.compile(
    r"^(?:(?:next time|for next time|this time|next question|from now on|in future|in the future|thank you|"
    r"and|so|then|now|also|ok|okay|oh|ah|well|please|but|hey|look|sorry|next|just|maybe|instead|great|good|thanks|"
    r"hmm|hm|um|no|yes|yep|yeah|honestly|actually)\b[,:]?\s*)+"
)
REQUEST = re.compile(
    r"\b(?:can|could|would|will|may) (?:not )?(?:you|i|we)\b|\b(?:do|would) you mind\b|^mind \w+ing\b|\bi (?:need|want) you to\b|\blet us\b"
)
ABOUT_REPLY = re.compile(
    r"\b(?:you|your|yours|yourself|that|this|instead|again|(?:the|an?) (?:answer|reply|response|explanation|text)|"
    r"next time|from now on|in future|every time|always)\b"
)
# whom an answer is for: "explain it to a five-year-old"
AUDIENCE = re.compile(
    r"\b(?:to|for|like) (?:an? |the |my |his |her |our |some )?(?:(?:\w+[- ])?years?[- ]olds?|child|children|kids?|toddlers?|"
    r"beginners?|novices?|newcomers?|lay(?:man|men|person|people)|(?:non-?)?experts?)\b"
)
BECAUSE = re.compile(r"\b(?:because|since (?:i|we|it|that|this|my|he|she|they))\b.*$")
IT = re.compile(r"\b(?:it|them|these|those|one|ones)\b")
WISH = re.compile(
    r"\b(?:i|we) (?:\w+ ){0,3}?(?:asked|wanted|want|hoping|hoped|expected|expecting|prefer|preferred|rather|need|needed|meant|"
    r"said|told you|requested|wish|wished)\b|\b(?:i|we) would (?:have )?(?:like|liked|love|loved)\b|"
    r"\ball (?:that )?i (?:\w+ )?(?:need|want|wanted|needed|asked)|\bmore than i (?:\w+ )?(?:need|want|asked)|"
    r"\b(?:should|could|ought to|might) have (?:been|had|said|used|just)?|\bsupposed to\b|\bmeant to be\b"
)
STRONG_WISH = re.compile(
    r"\bi (?:\w+ ){0,2}?(?:asked|meant|said|told you|requested)\b|\bi (?:was|am|were) (?:\w+ )?(?:hoping|expecting)\b|"
    r"\b(?:i|we) (?:only|just|simply) (?:\w+ )?(?:want|wanted|need|needed|asked)\b|\b(?:i|we) (?:had )?(?:expected|hoped|wanted)\b|"
    r"\bi would (?:rather|prefer|have)\b|\bi prefer\b|\ball (?:that )?i (?:\w+ )?(?:need|want|wanted|needed|asked)|"
    r"\bmore than i\b|\b(?:should|could) have (?:been|had|said|used|just)\b|\bsupposed to\b"
)
JUST_RIGHT = re.compile(
    r"\b(?:just|exactly|precisely) (?:what |that )?i (?:was |am )?(?:\w+ )?(?:need|needed|want|wanted|asked|looking|hoping|meant|after)\b"
    r"|\bthat is (?:just |exactly )?what i (?:\w+ )?(?:need|needed|want|wanted|asked|meant|like|love|call)\b|\b(?:spot|bang|dead) on\b|\bhit the spot\b|\bkeep it up\b|\bmore like it\b|\bgood to know\b|\b(?:could|can|would) not (?:\w+ )*better\b|\b(?:is|was|much|sounds|looks|way|lot|far) better\b|"
    r"\bclear(?:s|ed) (?:it|that|things|this) up\b|\bmake(?:s)? (?:\w+ )?sense\b|\bnever knew\b|"
    r"\blearned (?:something|a lot)\b|\bgot it\b|\bi see\b|\bwell done\b|\bnailed it\b|\bknow your stuff\b|\blooks good\b|"
    r"\bi (?:will|would|am going to) (?:\w+ )?(?:use|try|watch|read|take|do|go with|keep|buy|cook|make|save|remember|share) (?:it|that|this|them)\b|"
    r"\btell me more\b|\byou are (?:right|the best|a star|awesome|great|correct)\b|\bwork(?:s|ed)? for me\b|\bgood (?:enough|point|idea|one)\b"
)
EXCESS = re.compile(
    r"\b(?:way |far |much |a bit |a little |rather |just |still |simply )*\b(?:too|overly) ([a-z-]+)"
)
SO = re.compile(r"\b(?:so|such an?|very|really|awfully|pretty|quite|rather) ([a-z-]+)")
MUCH = re.compile(
    r"\b(?:a (?:bit|little|lot|tad)|way|far|so|too|that is|awfully) (?:too )?much\b|\bon and on\b|\bwall of\b|"
    r"\b(?:so|too|that) many\b|\bget(?:ting)? to the point\b|\ball (?:of )?(?:that|this)\b.{0,20}\b(?:text|words|read)\b|\btl;dr\b|\btldr\b|"
    r"\bno more\b(?! questions)|\bnothing more\b|\bway more\b|\ba lot (?:of text|to read)\b|\blonger than\b|\bfar more\b|\bcut (?:it|half|this|that)\b|"
    r"\b(?:that|this|it) (?:is|was) (?:\w+ )?(?:a (?:whole )?lot|loads|a ton|tons)(?: (?:to|of|for|here)\b.*)?\W*$|"
    r"\bwho (?:\w+ )?(?:asked|needs|wants|reads|has time)\b.*\ball (?:of )?(?:that|this)\b"
)
LITTLE = re.compile(
    r"\bnot (?:nearly |quite )?(?:enough|\w+ enough)\b|\bleft out\b|\btoo little\b|\bmore details?\b"
)
NOT_IT = re.compile(
    r"\b(?:that|this|it|you|which|the (?:answer|reply|code|link|tone|word|\w+)|your \w+) "
    r"(?:really |just |still |simply |even |certainly |definitely )?(?:is|was|are|were|does|did|do|has|have|had|can|will|would|should) "
    r"(?:really |just |simply |still |even |at all )?not\b|\bnot (?:at all |really |quite |exactly )?(?:what|it|right|quite|true|the case)\b|\bthat is not\b"
)
I_NOT = re.compile(
    r"\bi (?:do|can|could|did|am|was|would|have) (?:really |still |even |just |simply )?not (?:really |even |quite |still )?"
    r"(?:understand|read|get|follow|want|need|like|see|use|agree|think|believe|ask|asked|looking|open|trust|speak|eat|recall|remember asking)\b"
)
CONFUSED = re.compile(
    r"\b(?:over my head|hard to (?:follow|read|understand|parse)|lost me|glaz(?:e|ed) over|do not get (?:it|this|that)|"
    r"what do you mean|no sense|make (?:any )?sense of|in the dark|no idea what)\b"
)
AGAIN = re.compile(
    r"\b(?:once more|try (?:again|once)|do (?:it|this|that) over|start over|one more time|do over|another (?:go|try|one|attempt))\b"
)
ELSE = re.compile(r"\b(?:something|anything|someone|somewhere) (?:else|different)\b")
TOPIC_CHANGE = re.compile(r"\b(?:talk|chat|speak|switch|move on|discuss|know) (?:\w+ )?(?:about|to|on)\b")
NO_TROUBLE = re.compile(
    r"\b(?:no|not a|not any|without|zero|never a|nothing) (?:more |other |further |single )?(?:complaints?|problems?|worries|issues?|questions?|need|changes?|"
    r"mistakes?|errors?|wrong|bad|thanks|doubt|rush|notes)\b|\bnot bad\b|\bnot wrong\b|\bcan not complain\b"
)
CONDITIONAL = re.compile(r"\b(?:would|could|might) (?:be|have been|work|do|suit|help|suffice|go)\b")
SUFFICES = re.compile(
    r"\b(?:is|are|would be|will be|was|would have been) (?:more than |quite |just )?(?:plenty|enough|sufficient|fine)\b|\b(?:will|would) (?:do|have done)\b|\bsuffices?\b|\bis (?:just |all )?what i (?:\w+ )?(?:like|want|need|prefer|after)\b"
)
REPROACH = re.compile(
    r"^(?:and |but |so )?(?:why (?:are|did|do|is|does|would|can) (?:you|this|that|it|your)|are you (?:even|still|always|just)|did you (?:even|not)|do you (?:even|not|always))\b|^why (?:not|are not|is not)\b"
)
FORBIDS = re.compile(
    r"^(?:do not|stop|quit|avoid|never)\b(?! mind| worry)|"
    r"^you (?:should|must|need to|have to|ought to) (?:start|end|begin|finish|answer|reply|respond|say|write|use|call|keep|stop)\b"
)
# of how the assistant comes across; some likenesses please
SOUNDS_LIKE = re.compile(
    r"\byou (?:\w+ )?(?:sound|read|talk|speak|write|come across|act|behave) (?:\w+ )?(?:like|as if|as though)\b"
    r"(?! (?:\w+ ){0,2}(?:expert|pro|professional|native|genius|friend|poet|teacher)\b)|"
    r"\b(?:sounds?|reads?|feels?|looks?) (?:\w+ )?like (?:an? )?(?:\w+ )?(?:robot|machine|advert|advertisement|ad|brochure|"
    r"manual|textbook|script|template|press release|sales pitch|lecture|sermon)s?\b"
)
WHO_ASKED = re.compile(
    r"^(?:who|nobody) (?:\w+ )?asked\b.*\b(?:this|that|it|these|those)\b|"
    r"^(?:who|nobody) (?:\w+ )?(?:needs|wants|reads|cares about|has (?:the )?time)\b.*\b(?:this|that|it|these|those)"
    r"(?: much| many)?(?: (?:text|details?|words|information|stuff))?\W*$"
)
# "be blunt", said of the way to answer
BE_SO = re.compile(
    r"^(?:please )?be (?:a (?:bit|little) |much |\w+ly )?(?:more |less |so )?(?!(?:right|back|well|safe|there|here|a|an|the|my|in|at|on|quiet)\b)"
    r"[a-z-]+(?: (?:with|to) (?:me|us))?(?:,? please)?\W*$"
)
# a name for the user; not "call me a cab" or "call me later"
CALLS_ME = re.compile(
    r"^(?:please )?(?:call me|address me as) (?!(?:an?|the|some|at|on|in|by|if|when|back|up|out|later|again|once|now|today|tomorrow|tonight"
    r"|after|before|for|to|from|about|with)\b)\w"
)
# "skip the pep talk": a short order to leave out what replies are made of
LEAVE_OUT = re.compile(
    r"^(?:please )?(?:drop|skip|lose|cut|ditch|omit|scrap|spare me|save me|leave out|cut out|tone down|dial down|dial back|go easy on|"
    r"lay off|enough(?: with| of)|no need for) (?:all )?(?:the|your|those|these|that) "
    r"(?!(?:table|database|column|file|schema|index|call|line|queue|ball|rope|ticket|cake|bread|wire|power)\b)[\w-]+(?: [\w-]+)?(?: please)?\W*$"
)
WHERE_IS = re.compile(r"^where (?:is|are) (?:the|my) ([\w-]+)(?: [\w-]+)?\W*$")
BE_NOT = re.compile(r"\b(?:is|are|was|were|has|have|does|do|did|should) not\b|^not an? \b")
NEVER_FAILS = re.compile(r"\byou (?:\w+ )?(?:never|always) (?:fail|disappoint)")
UNAWARE = re.compile(r"\bnot (?:know|mind|realise|realize|aware)\b")
