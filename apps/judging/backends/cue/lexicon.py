"""Words that carry a cue. Lists of words, never of sentences:
what is said with them is left to the speaker."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LANGUAGES = _words(
    "english french german spanish italian portuguese dutch polish russian ukrainian chinese mandarin japanese"
    " korean arabic hindi turkish greek latin swedish danish norwegian finnish czech hebrew vietnamese thai"
    " français francais deutsch español espanol italiano português"
)

# what a text is made of: an answer can be "in" these
UNITS = LANGUAGES | _words(
    "sentence sentences word words line lines paragraph paragraphs character characters letters lowercase uppercase"
    " caps capitals style tone prose verse rhyme markdown json yaml html format language order"
)

# how a text can be
MANNERS = _words(
    "short shorter shortest brief briefer briefly concise concisely succinct succinctly terse compact crisp snappy"
    " quick quicker long longer lengthy detailed simple simpler simplest simply plain plainer formal formally informal"
    " casual casually polite politer friendly friendlier serious funny funnier technical wordy verbose chatty clear"
    " clearer clearly specific precise direct numbered bulleted bold italic descending ascending alphabetical"
    " childish warm warmer cheerful professional longwinded understandable readable easier nicer better kinder"
)

FORMS = (
    UNITS
    | MANNERS
    | _words(
        "list lists bullet bullets point points step steps table tables emoji emojis heading headings header headers"
        " formatting detail details length one-liner oneliner summary gist version tl;dr tldr text essay novel lecture"
        " preamble introduction intro disclaimer disclaimers jargon example examples fewer less half tops max maximum"
        " depth nuance single order wording phrasing shortened reply response answer answers replies responses asterisks quotes"
        " slang facts numbers nutshell chase liner"
    )
)

# of these an answer that has some may have too many; of other forms it may lack some
UNWANTED = _words(
    "emoji emojis asterisks bold italic caps capitals uppercase markdown formatting preamble introduction intro disclaimer"
    " disclaimers jargon slang"
)

# weigh more than an answer should
BULK = _words(
    "essay essays lecture lectures novel sermon rambling ramble rambles rambled blather waffle wordy verbose bloated"
    " long-winded longwinded lengthy repetitive repetitious bloat mouthful monologue speech thesis"
)

PRAISE = _words(
    "great perfect perfectly excellent nice nicely good lovely wonderful awesome brilliant helpful amazing cool fantastic neat"
    " ideal impressive beautiful hilarious superb useful clever spot-on nailed lifesaver exactly correct delightful"
    " sweet fabulous terrific outstanding splendid magnificent marvelous marvellous beautifully insightful legend genius"
    " super informative clear easy right bravo kudos handy stellar solid yay hooray fascinating interesting"
)
PRAISE_OF_IT = _words(
    "love loved loves like liked enjoy enjoyed adore adored dig"
)  # count with an object: "it", "that"
WORKS = _words(
    "works worked working fixed fixes solved solves passes pass passed helps helped resolved answers answered"
)
THANKS = _words(
    "thanks thank thx ty cheers appreciate appreciated grateful tysm thankyou merci danke gracias"
)
ASSENT = _words("yes yep yeah yup ok okay alright sure understood gotcha indeed")

BLAME = _words(
    "wrong incorrect incorrectly false untrue inaccurate bad badly terrible horrible awful useless unhelpful worthless"
    " confusing boring dull disappointing disappointed rubbish nonsense mistake mistakes mistaken error errors poor"
    " poorly weak sloppy messy mess unreadable annoying annoyed frustrating frustrated irrelevant incomplete"
    " inappropriate rude ridiculous distracting hallucinated hallucinating broken broke crashes fails failed failing"
    " worse worst misleading outdated garbage trash crap bullshit stupid dumb idiotic lame pointless bland dry"
    " unclear vague generic shallow superficial skimpy flimsy robotic cringe cheesy patronising patronizing condescending preachy off-topic missing lacks lacking"
    " hate hated dislike disliked refuse unacceptable wtf overcomplicated overkill tedious tiresome excessive excessively"
)
# others than the two who talk
PEOPLE = _words(
    "customer client boss manager colleague coworker teacher professor student neighbour neighbor landlord tenant friend"
    " doctor nurse dentist lawyer guy man woman girl boy kid child person reviewer interviewer recruiter seller buyer"
    " waiter driver supplier contractor user employee employer team company shop store bank hotel airline school"
)

# nouns by which a user points at something in the reply
OF_A_REPLY = _words(
    "date year name code link url source sources formula result results calculation spelling grammar math maths number"
    " price figure figures first second third last rest end beginning ending part paragraph section title joke poem"
    " story recipe plan translation solution suggestion advice information info attitude writing content structure"
    " rhyme rhythm plot logic reasoning function script program command output file layout font color colour"
)

# may stand between a subject and its "works"
BETWEEN = _words(
    "really just now finally actually also perfectly totally certainly definitely still even has have indeed did not"
)

# of which "works" is said in praise of a reply
WHAT_WORKS = OF_A_REPLY | _words(
    "it that this these those which everything all they both one tests test trick fix and you answer answers reply"
    " explanation example examples steps version is are does do no never"
)

# of the user, but said of what the reply does to them: "my eyes glazed over", "not to my taste"
OF_THE_READER = _words(
    "eyes eye head brain attention mind patience question questions request instructions prompt message messages point"
    " name taste liking answer answers reply replies response responses query wish expectations time life input tests build compiler"
)

CONFUSION = _words("confused lost puzzled bewildered baffled perplexed")
GROANS = _words("ugh meh nope nah sigh argh gah huh blah yikes")
DOUBT = _words("hmm hm hmmm erm um surely seriously honestly actually wait look whoa already even")

# a positive word makes these no complaint: "too kind"
KIND = _words("kind good nice sweet generous funny cute cool easy kindly true much-appreciated fun perfect")

YOU_ERR = _words(
    "forgot missed skipped ignored omitted misread misunderstood misspelled misspelt misinterpreted overlooked"
    " repeated contradicted mixed confused wrote said gave used put told made keep kept lost rambled left went"
    " changed removed dropped added switched invented assumed always never failed"
)

WISHES = _words(
    "asked wanted want wants hoping hoped expected expecting prefer preferred rather need needed meant said told"
    " requested wish wished wishing looking liked like"
)

SUFFICE = _words("plenty enough sufficient suffice suffices fine")

REDO = _words(
    "again redo rewrite rephrase reword retry instead undo shorten simplify condense trim summarise summarize"
)

NEGATIONS = _words("not no never nobody none without cannot nothing neither nor hardly barely")

# what a request to the assistant begins with
VERBS = _words(
    "answer reply respond write say tell give use keep make be stop avoid add include remove drop skip cut trim"
    " shorten simplify explain rewrite redo rephrase reword try repeat put format list number translate summarise"
    " summarize sum limit stick get speak talk describe show leave fix correct check go start end finish draft compare"
    " suggest recommend turn book plan find create generate draw compose calculate compute solve convert define name"
    " help do don't let cut condense shrink expand elaborate spell capitalise capitalize bold set call send open tone"
    " quit lose omit switch mention quote number begin restrict reduce spare save tighten dial read"
)

# verbs that say how to answer rather than what about
FORM_VERBS = _words(
    "answer reply respond keep shorten simplify condense trim tighten rephrase reword rewrite redo shrink"
    " summarise summarize format avoid stop limit restrict skip drop omit number capitalise capitalize be use"
)

QUESTION_WORDS = _words("what why how when where who whom whose which what's how's who's where's")
AUXILIARIES = _words(
    "is are was were do does did can could will would should has have had may might am must isn't aren't don't"
)

STOPWORDS = (
    QUESTION_WORDS
    | AUXILIARIES
    | NEGATIONS
    | _words(
        "a an the this that these those it its i me my mine we us our you your yours he she they them their and or but"
        " so if then than as of in on at to from for with by about into over under up down out off be been being not"
        " just only please maybe perhaps also too very really quite much many more most less fewer some any all each"
        " every one two three four five six seven eight nine ten twenty fifty hundred single couple few bit lot lots"
        " here there now next time times first last other another same such own way ever still again once twice mind"
        " ok okay yes well oh ah hey let need want get got thing things something anything else future sorry kind"
        " hurry because since while until after before during between both either though although however yet"
        " using used follow understand yourself myself instead like would'd else don't doesn't didn't won't wouldn't couldn't shouldn't mean means"
    )
)
