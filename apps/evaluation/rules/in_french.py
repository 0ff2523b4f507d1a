"""In French: told by the small words that every French sentence needs.

A rule of function words instead of a detector library: it has no model to download or to change under a
measurement, says why it decided, and is sure of a reply of one sentence, where statistical detectors waver.
"""

import re

from apps.evaluation.rules.verdict import Heard, Verdict, verdict_of

MIN_WORDS = 4
MIN_SHARE = 0.2
"""Of all words, those that are French function words; running French has about a half."""
# Spelled like no word of English, Spanish, Italian, Portuguese or German that is as frequent.
_PROOF = """le les des du au aux et est une dans pour avec chez sous pas qui dont où ou je vous nous elle ils elles ce cet
    cette ces sont être été était avoir ont avez avons fait faire peut peuvent doit aussi très mais donc comme quand
    votre vos notre leur leurs ses mes il lui j l n qu jusqu lorsqu puisqu parce entre pendant après avant toujours
    jamais même tout tous toute toutes"""
# French, and other languages' too: they add to the share, never to the proof.
_ALSO = "la de que un en on se si tu a à par sans sur plus son car y c d m s"
_OTHERS = """the of and is are was to in it that for with as at by this be from an which you your can not have has they
    their its when how what there we he she will"""
_FRENCH, _SHARED, _ENGLISH = (frozenset(words.split()) for words in (_PROOF, _ALSO, _OTHERS))
_QUOTED = re.compile(r"[\"\u201c\u00ab][^\"\u201d\u00bb]*[\"\u201d\u00bb]")
_WORD = re.compile(r"[^\W\d_]+")


def in_french(heard: Heard) -> Verdict:
    """Pass a reply whose own words (quotations aside) are mostly French: see the constants."""
    words = _WORD.findall(_QUOTED.sub(" ", heard.text).casefold())
    proof = [word for word in words if word in _FRENCH]
    share = sum(word in _FRENCH or word in _SHARED for word in words) / max(1, len(words))
    english = sum(word in _ENGLISH for word in words)
    return verdict_of(
        heard,
        {
            "too few words": len(words) < MIN_WORDS,
            "not French": english > len(proof)
            or share < MIN_SHARE
            or len(set(proof)) < (2 if len(words) < 12 else 3),
            "half English": 3 * english > len(proof),
        },
    )
