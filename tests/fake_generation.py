"""What a fake engine is asked and what it says, as SGLang's `/generate` has it."""

import time
from dataclasses import dataclass, field
from typing import Any

END_OF_TURN = 2  # <|im_end|> of the embedded model


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a scripted reply."""

    id: int
    text: str
    logprob: float = -0.25


# "One short sentence." in the embedded model's vocabulary, then the end of the turn
ONE_SHORT_SENTENCE = (
    Token(2705, "One", -0.5),
    Token(1890, " short", -0.25),
    Token(6330, " sentence", -0.125),
    Token(30, ".", -0.0625),
    Token(END_OF_TURN, "", -0.03125),
)


@dataclass(slots=True)
class Request:
    """A `/generate` request as the engine saw it."""

    rid: str
    input_ids: list[int]
    sampling: dict[str, Any]
    adapter: str | None
    stream: bool
    body: dict[str, Any]
    headers: dict[str, str]
    started: float = field(default_factory=time.monotonic)
    first: float | None = None  # when (monotonic) the first token of a whole reply was there
    sent: int = 0
    aborted: float | None = None  # when (monotonic), by hang-up or /abort_request
    finished: bool = False


def times_of(request: Request) -> dict[str, float]:
    """Return what the engine says of the time when a whole reply has ended, seconds."""
    said = {"e2e_latency": time.monotonic() - request.started}
    if request.first is not None:
        since = request.first - request.started
        said |= {"first_token_latency": since, "prefill_finished_time": time.time()}
    return said


def event_of(request: Request, tokens: tuple[Token, ...], finish: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the engine has written so far as it says so:
    all of the text, ids and log-probabilities again."""
    meta: dict[str, Any] = {
        "id": request.rid,
        "finish_reason": finish,
        "prompt_tokens": len(request.input_ids),
        "completion_tokens": len(tokens),
        "cached_tokens": 0,
        "weight_version": "default",
    }
    if request.body.get("return_logprob"):
        meta["output_token_logprobs"] = [[token.logprob, token.id, None] for token in tokens]
    if most := request.body.get("top_logprobs_num"):
        # the token itself, then others with less and less; the last one has no probability at all
        meta["output_top_logprobs"] = [
            [[token.logprob, token.id, None], *([-3.4e38, token.id + i, None] for i in range(1, most))]
            for token in tokens
        ]
    text = "".join(token.text for token in tokens)
    if finish is not None and isinstance(finish.get("matched"), str):
        text = text[: text.index(finish["matched"])]  # the stop text itself is not given out
    return {
        "text": text,
        "output_ids": [token.id for token in tokens],
        "meta_info": meta,
    }
