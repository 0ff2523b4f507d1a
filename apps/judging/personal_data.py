"""Find personal data in text: Microsoft Presidio's pattern recognisers, without a language model.

Addresses, numbers and identifiers have a form and mostly a check sum; they are found. Names and places have
none, and are not: that would take a model for each language (`docs/decisions/personal-data.md`).
"""

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from apps.judging.judge import Message, TurnView
from apps.judging.models import PersonalData

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine

SURE = 0.4  # a recogniser's score; what only looks like one stays below unless a check sum holds
LONGEST_PIECE = 20_000  # characters looked at together
_OVERLAP = 200  # so that nothing hides on a border

# what a recogniser calls it -> what people call it
KINDS: Mapping[str, str] = {
    "EMAIL_ADDRESS": "email address",
    "PHONE_NUMBER": "phone number",
    "CREDIT_CARD": "card number",
    "IBAN_CODE": "bank account",
    "IP_ADDRESS": "network address",
    "MAC_ADDRESS": "network address",
    "CRYPTO": "wallet address",
    "US_SSN": "social security number",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Characters [start, end) of a text that are personal data."""

    start: int
    end: int
    kind: str


def find(text: str) -> list[Finding]:
    """Return what was found, in order, without overlaps."""
    if not any(character.isdigit() or character in "@:" for character in text):
        return []  # all that has a form holds one of these
    found: list[Finding] = []
    for offset in range(0, max(1, len(text)), LONGEST_PIECE - _OVERLAP):
        results = _analyzer().analyze(
            text[offset : offset + LONGEST_PIECE], language="en", entities=list(KINDS), score_threshold=SURE
        )
        found += [
            Finding(offset + result.start, offset + result.end, KINDS[result.entity_type])
            for result in results
        ]
    return _merged(found)


def redact(text: str) -> str:
    """Return text with what was found replaced by its kind in brackets."""
    pieces: list[str] = []
    at = 0
    for finding in find(text):
        pieces += [text[at : finding.start], f"[{finding.kind}]"]
        at = finding.end
    return "".join([*pieces, text[at:]])


def kinds_in(*values: Any) -> list[str]:
    """Return the kinds found anywhere in JSON values, sorted."""
    texts = itertools.chain.from_iterable(_texts(value) for value in values)
    return sorted({finding.kind for text in texts for finding in find(text)})


def redacted(value: Any) -> Any:
    """Return a JSON value with every text in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: redacted(item) for name, item in value.items()}
    return [redacted(item) for item in value] if isinstance(value, list | tuple) else value


def seen_by_judge(view: TurnView, mode: PersonalData) -> TurnView:
    """Return what a judge gets to see: wherever something is looked for, without personal data."""
    if mode == PersonalData.OFF:
        return view
    return TurnView(
        request=tuple(_message(message) for message in view.request),
        reply=_message(view.reply),
        next_state=tuple(_message(message) for message in view.next_state),
    )


def why_not_trained_on(
    mode: PersonalData, *, request: Sequence[Message], reply: Message, next_state: Sequence[Message] | None
) -> list[str]:
    """Return the kinds of personal data that keep a turn from teaching, none where it may.

    `drop`: any, anywhere in it. `redact`: any in the reply. A reply's tokens are exact or they are nothing:
    they cannot be redacted, and a hole in the middle would still teach to say the rest around it.
    """
    if mode == PersonalData.DROP:
        return kinds_in(list(request), reply, list(next_state or ()))
    return kinds_in(reply) if mode == PersonalData.REDACT else []


def _message(message: Message) -> Message:
    return {name: redacted(value) for name, value in message.items()}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [text for item in value for text in _texts(item)] if isinstance(value, list | tuple) else []


def _merged(found: list[Finding]) -> list[Finding]:
    merged: list[Finding] = []
    for finding in sorted(found, key=lambda one: (one.start, -one.end)):
        if merged and finding.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Finding(last.start, max(last.end, finding.end), last.kind)
        else:
            merged.append(finding)
    return merged


@cache
def _analyzer() -> "AnalyzerEngine":
    """Return the recognisers; importing them takes a second, so only who looks for personal data pays it."""
    # it says at every text that without a language model there is no context to extract
    logging.getLogger("presidio-analyzer").setLevel(logging.WARNING)
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NoOpNlpEngine
    from presidio_analyzer.predefined_recognizers import (
        CreditCardRecognizer,
        CryptoRecognizer,
        EmailRecognizer,
        IbanRecognizer,
        IpRecognizer,
        MacAddressRecognizer,
        PhoneRecognizer,
        UsSsnRecognizer,
    )

    # the list of domains that came with the package: nothing is fetched from a worker
    offline = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)

    class OfflineEmailRecognizer(EmailRecognizer):  # type: ignore[misc,unused-ignore]
        def validate_result(self, pattern_text: str) -> bool:
            return bool(offline(pattern_text).fqdn)

    engine = NoOpNlpEngine(models=[{"lang_code": "en", "model_name": ""}])
    engine.load()
    registry = RecognizerRegistry(
        recognizers=[
            OfflineEmailRecognizer(),
            PhoneRecognizer(leniency=2),
            CreditCardRecognizer(),
            IbanRecognizer(),
            IpRecognizer(),
            MacAddressRecognizer(),
            CryptoRecognizer(),
            UsSsnRecognizer(),
        ],
        supported_languages=["en"],
    )
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
