"""What an SGLang server answers, checked: deltas of a reply, and errors by what they mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel.errors import AttuneError, InvalidInput, RateLimited, Unavailable


class EngineUnavailable(Unavailable):
    """The engine does not answer, or not yet: another try later may work."""

    code = "engine_unavailable"


class EngineGone(EngineUnavailable):
    """Nobody listens at the engine's address."""

    code = "engine_gone"


class EngineSilent(EngineUnavailable):
    """The engine is there and does not answer in time: busy, or stuck."""

    code = "engine_silent"


class AdapterMissing(EngineUnavailable):
    """The engine does not have the adapter it was asked for; reconciling brings it back."""

    code = "adapter_missing"


class AdapterRefused(AdapterMissing):
    """An engine has said since its boot that the adapter is not what was trained:
    asking again says so again."""


class EngineBroken(EngineUnavailable):
    """The engine stopped in the middle of a reply, or its answer makes no sense."""

    code = "engine_broken"
    status = 502


class EngineBusy(RateLimited):
    """The engine's queue is full."""

    code = "engine_busy"


class EngineRejected(InvalidInput):
    """The engine does not accept the request as it is; trying again will not help."""

    code = "engine_rejected"


def error_of(status: int, message: str) -> AttuneError:
    """Return the error that an engine's status and words mean.

    Words about adapters stay out of the message: they list the names of other tenants' adapters.
    """
    if "LoRA adapter" in message or "lora" in message.lower():
        return AdapterMissing("the engine does not have this adapter loaded", retry_after_s=5.0)
    if status == 429 or "queue is full" in message:
        return EngineBusy("the engine's queue is full", retry_after_s=1.0)
    if 400 <= status < 500 and status not in (401, 403, 404, 408):
        return EngineRejected(message)
    if status in (401, 403):
        return EngineUnavailable("the engine does not accept this platform's key")
    return EngineUnavailable(f"the engine answered with status {status}", retry_after_s=1.0)


_NO_CHANCE = -9999.0  # as OpenAI says it


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request so far."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a reply gained since the chunk before. Only the last one has a `finish_reason`."""

    text: str
    output_ids: list[int]
    output_logprobs: list[float]
    """One for each of `output_ids`, nats, at the sampled temperature; empty where `misaligned` says why."""
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)
    """Where they were asked for: for each of `output_ids` the likeliest tokens and
    their log-probabilities."""
    finish_reason: str | None = None
    """stop, length or abort."""
    stopped_by: int | str | None = None
    """The token (int) or stop string (str) that ended the reply."""
    usage: Usage = field(default_factory=Usage)
    held_back: bool = False
    """Whether the text of `output_ids` ends in what may become a stop string,
    and is not all given out yet."""
    misaligned: str = ""
    """Why this reply's log-probabilities cannot be trusted; once set it stays set for the reply."""
    first_token_ago_s: float | None = 0.0
    """Of a reply's first chunk: how long before it came the first token was there. 0 where it came in a stream,
    None where the reply came whole and the engine does not say."""


class Reply:
    """Turns SGLang's cumulative frames of one reply into chunks.

    Text that may yet turn out to be the beginning of a stop string is held back until that is known.
    """

    def __init__(self, *, stop: Sequence[str] = (), streamed: bool = True) -> None:
        """`streamed`: whether the engine was asked for frames as it writes, not for one of the whole."""
        self._stop = tuple(stop)
        self._streamed = streamed
        self._text = 0
        self._tokens = 0
        self._misaligned = ""
        self.finished = False

    def advance(self, frame: Mapping[str, Any]) -> Chunk:
        """Return what `frame` adds. Raises where the frame says that the engine gave up."""
        if "error" in frame:
            error = frame["error"] if isinstance(frame["error"], dict) else {"message": str(frame["error"])}
            raise error_of(_whole(error.get("code") or 500), str(error.get("message", "")))
        meta = _object(frame, "meta_info")
        reason = _object(meta, "finish_reason")
        if reason.get("type") == "abort" and reason.get("status_code"):
            raise error_of(_whole(reason["status_code"]), str(reason.get("message", "")))
        text, ids = frame.get("text"), frame.get("output_ids")
        if not isinstance(text, str) or not isinstance(ids, list):
            raise EngineBroken("the engine's frame has no text or no output_ids")
        self.finished = bool(reason)
        fresh_ids = ids[self._tokens :]
        logprobs = self._aligned(ids, meta.get("output_token_logprobs"))
        self._tokens = max(self._tokens, len(ids))
        certain = self._certain(text)
        return Chunk(
            text=certain,
            output_ids=fresh_ids,
            output_logprobs=logprobs,
            top_logprobs=_likeliest(meta.get("output_top_logprobs"), since=len(ids) - len(fresh_ids)),
            finish_reason=reason.get("type"),
            stopped_by=reason.get("matched"),
            usage=Usage(
                _whole(meta.get("prompt_tokens") or 0),
                _whole(meta.get("completion_tokens") or 0),
                _whole(meta.get("cached_tokens") or 0),
            ),
            held_back=self._text < len(text),
            misaligned=self._misaligned,
            first_token_ago_s=0.0 if self._streamed else _since_first_token(meta),
        )

    def _certain(self, text: str) -> str:
        end = len(text)
        if not self.finished:
            end -= max((_overlap(text, stop) for stop in self._stop), default=0)
        fresh = text[self._text : end]
        self._text = max(self._text, end)
        return fresh

    def _aligned(self, ids: list[int], logprobs: object) -> list[float]:
        """Return the new tokens' log-probabilities, or none and say why: nothing is ever padded."""
        if not self._misaligned:
            self._misaligned = _misalignment(ids, logprobs, since=self._tokens)
        if self._misaligned or not isinstance(logprobs, list):
            return []
        return [float(entry[0]) for entry in logprobs[self._tokens : len(ids)]]


def _since_first_token(meta: Mapping[str, Any]) -> float | None:
    """Return the seconds from the first token of a whole reply to its end, None where the engine does not say.

    SGLang does with `--enable-metrics`. Its latency is that of the token only where its scheduler sent
    `prefill_finished_time`: without that it is when the server in front first heard of tokens, which of a
    reply that is not streamed is every fifty.
    """
    first, last = meta.get("first_token_latency"), meta.get("e2e_latency")
    if not all(map(_is_number, (first, last, meta.get("prefill_finished_time")))):
        return None
    return last - first if 0 <= first <= last else None  # type: ignore[operator]


def _likeliest(entries: object, *, since: int) -> list[list[tuple[int, float]]]:
    if not isinstance(entries, list):
        return []
    return [[_likely(entry) for entry in _listed(one)] for one in entries[since:]]


def _likely(entry: object) -> tuple[int, float]:
    value, token = _scored(entry)
    if not (_is_number(value) and _is_number(token)):
        raise EngineBroken(f"the engine said {str(entry)[:80]} of a token it might have taken")
    return int(token), max(float(value), _NO_CHANCE)


def _scored(entry: object) -> tuple[Any, Any]:
    """Return (log-probability, token) of what an engine said of a token;
    (None, None) where it is nothing of the kind."""
    return (entry[0], entry[1]) if isinstance(entry, list | tuple) and len(entry) >= 2 else (None, None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _listed(value: object) -> list[Any]:
    """Return a list of an engine's frame; one that is not there is empty.

    Raises EngineBroken where it is something else.
    """
    if value is not None and not isinstance(value, list):
        raise EngineBroken(f"the engine's frame holds {str(value)[:80]} where a list belongs")
    return value or []


def _object(frame: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object of an engine's frame; one that is not there is empty.

    Raises EngineBroken where it is something else.
    """
    value = frame.get(name)
    if value is not None and not isinstance(value, dict):
        raise EngineBroken(f"the engine's {name} is {str(value)[:80]}, not an object")
    return value or {}


def _whole(value: object) -> int:
    if not _is_number(value):
        raise EngineBroken(f"the engine's frame holds {str(value)[:80]} where a number belongs")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of `text` that is a beginning of `stop`, but not all of it."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)


def _misalignment(ids: list[int], logprobs: object, *, since: int) -> str:
    if not isinstance(logprobs, list):
        return "the engine sent no log-probabilities"
    if len(ids) < since:
        return f"the engine took tokens back: {since} became {len(ids)}"
    if len(logprobs) != len(ids):
        return f"{len(logprobs)} log-probabilities for {len(ids)} tokens"
    for place in range(since, len(ids)):
        value, token = _scored(logprobs[place])
        if token != ids[place]:
            return f"token {place} is {ids[place]}, its log-probability is of {token}"
        if not _is_number(value) or not -1e4 < value <= 1e-3:
            return f"the log-probability of token {place} is {value}"
    return ""


def input_logprobs(ids: Sequence[int], reply: Mapping[str, Any], *, vocab_size: int) -> list[float]:
    """Return log p(ids[t+1] | ids[:t+1]) for t = 0 … len(ids) - 2, nats, as the engine scored them.

    Raises EngineBroken where the reply is not about exactly `ids`: nothing is ever guessed from it.
    """
    meta = _object(reply, "meta_info")
    entries = _listed(meta.get("input_token_logprobs"))
    about = f"request {meta.get('id')}"
    if len(entries) != len(ids):
        raise EngineBroken(f"the engine scored {len(entries)} of {len(ids)} tokens ({about})")
    scored = [_scored(entry) for entry in entries]
    for place, ((_, named), token) in enumerate(zip(scored, ids, strict=True)):
        if named not in (token, _named_in_scores(token, vocab_size)):
            raise EngineBroken(
                "the engine scored other tokens than it was given: "
                f"token {str(named)[:80]} for {token} at place {place} of {len(ids)} ({about})"
            )
    values = [value for value, _ in scored[1:]]
    if not all(map(_is_number, values)):
        raise EngineBroken(f"the engine left a token without a log-probability ({about})")
    return [float(value) for value in values]


def _named_in_scores(token: int, vocab_size: int) -> int:
    """Return what SGLang 0.5.23 calls a token in `input_token_logprobs`;
    what it says of it is the token's own.

    It names whatever may not be a token 0 (ids of images are hashes there), and counts the vocabulary's last
    token among that: an off-by-one in the name only. The value is looked up by the true id.
    """
    return token if token < vocab_size - 1 else 0
