"""SGLang's cumulative frames become deltas; what does not fit says so; errors keep their meaning."""

from typing import Any

import pytest

from apps.engines.replies import (
    AdapterMissing,
    EngineBroken,
    EngineBusy,
    EngineRejected,
    EngineUnavailable,
    Reply,
    Usage,
    error_of,
    input_logprobs,
)


def frame(text: str, ids: list[int], logprobs: Any = "of the ids", finish: Any = None) -> dict[str, Any]:
    entries = [[-0.5, token, None] for token in ids] if logprobs == "of the ids" else logprobs
    return {
        "text": text,
        "output_ids": ids,
        "meta_info": {
            "finish_reason": finish,
            "prompt_tokens": 7,
            "completion_tokens": len(ids),
            "cached_tokens": 3,
            "output_token_logprobs": entries,
        },
    }


def test_cumulative_frames_become_deltas() -> None:
    reply = Reply()
    frames = [
        frame("One", [5]),
        frame("One", [5, 6]),
        frame("One two", [5, 6, 7]),
        frame("One two", [5, 6, 7, 2], finish={"type": "stop", "matched": 2}),
    ]

    chunks = [reply.advance(one) for one in frames]

    assert [chunk.text for chunk in chunks] == ["One", "", " two", ""]
    assert [chunk.output_ids for chunk in chunks] == [[5], [6], [7], [2]]
    assert [chunk.output_logprobs for chunk in chunks] == [[-0.5]] * 4
    assert [chunk.finish_reason for chunk in chunks] == [None, None, None, "stop"]
    assert (chunks[-1].stopped_by, chunks[-1].usage) == (2, Usage(7, 4, 3))
    assert reply.finished


TIMES = {"first_token_latency": 0.25, "e2e_latency": 18.0, "prefill_finished_time": 1.8e9}


@pytest.mark.parametrize(
    ("streamed", "said", "ago"),
    [
        (True, {}, 0.0),
        (True, TIMES, 0.0),
        (False, TIMES, 17.75),
        (False, TIMES | {"first_token_latency": 18.0}, 0.0),
        (False, {}, None),  # without --enable-metrics
        (False, {"e2e_latency": 18.0}, None),
        (False, TIMES | {"prefill_finished_time": None}, None),  # the scheduler said nothing
        (False, TIMES | {"first_token_latency": 18.5}, None),
        (False, TIMES | {"first_token_latency": -0.25}, None),
        (False, TIMES | {"first_token_latency": "soon"}, None),
        (False, TIMES | {"e2e_latency": True}, None),
    ],
)
def test_a_chunk_says_how_long_the_first_token_has_been_there(
    said: dict[str, Any], ago: float | None, *, streamed: bool
) -> None:
    one = frame("One", [5, 2], finish={"type": "stop", "matched": 2})
    one["meta_info"] |= said

    assert Reply(streamed=streamed).advance(one).first_token_ago_s == ago


def test_what_may_become_a_stop_string_is_held_back() -> None:
    reply = Reply(stop=("END", "\n\n"))
    texts = ["One E", "One EN", "One ENd", "One ENd\n", "One ENd"]

    chunks = [
        reply.advance(
            frame(text, list(range(i + 1)), finish={"type": "stop", "matched": "\n\n"} if i == 4 else None)
        )
        for i, text in enumerate(texts)
    ]

    assert [chunk.text for chunk in chunks] == ["One ", "", "ENd", "", ""]
    assert chunks[-1].stopped_by == "\n\n"


def test_held_back_text_comes_with_the_last_chunk() -> None:
    reply = Reply(stop=("END",))

    first = reply.advance(frame("the E", [1]))
    last = reply.advance(frame("the E", [1, 2], finish={"type": "length"}))

    assert (first.text, last.text, last.finish_reason) == ("the ", "E", "length")


@pytest.mark.parametrize(
    ("ids", "logprobs", "why"),
    [
        ([5, 6], None, "no log-probabilities"),
        ([5, 6], [[-0.5, 5, None]], "1 log-probabilities for 2 tokens"),
        ([5, 6], [[-0.5, 5, None], [-0.5, 9, None]], "token 1 is 6, its log-probability is of 9"),
        ([5, 6], [[-0.5, 5, None], [None, 6, None]], "token 1 is None"),
        ([5, 6], [[-0.5, 5, None], [float("nan"), 6, None]], "token 1 is nan"),
        ([5, 6], [[-0.5, 5, None], [0.7, 6, None]], "token 1 is 0.7"),
    ],
)
def test_misaligned_logprobs_are_reported_and_never_padded(ids: list[int], logprobs: Any, why: str) -> None:
    reply = Reply()

    bad = reply.advance(frame("a", ids, logprobs))
    after = reply.advance(frame("ab", [*ids, 7], finish={"type": "length"}))

    assert why in bad.misaligned
    assert (bad.output_ids, bad.output_logprobs) == (ids, [])
    assert (after.output_ids, after.output_logprobs, after.misaligned) == ([7], [], bad.misaligned)


def test_an_engine_that_takes_tokens_back_is_noticed() -> None:
    reply = Reply()
    reply.advance(frame("ab", [1, 2]))

    assert "took tokens back: 2 became 1" in reply.advance(frame("a", [1])).misaligned


@pytest.mark.parametrize(
    ("status", "message", "kind", "http"),
    [
        (429, "slow down", EngineBusy, 429),
        (503, "The request queue is full.", EngineBusy, 429),
        (400, "temperature must be non-negative", EngineRejected, 400),
        (
            400,
            "Got LoRA adapter that has never been loaded: x\nAll loaded: ['p1-v1-aa']",
            AdapterMissing,
            503,
        ),
        (401, "Unauthorized", EngineUnavailable, 503),
        (404, "Not Found", EngineUnavailable, 503),
        (500, "Internal Server Error", EngineUnavailable, 503),
    ],
)
def test_errors_keep_their_meaning_and_name_no_other_adapter(
    status: int, message: str, kind: type[Exception], http: int
) -> None:
    error = error_of(status, message)

    assert (type(error), error.status) == (kind, http)
    assert "p1-v1" not in error.message


def test_an_error_frame_and_an_abort_with_a_status_are_errors() -> None:
    with pytest.raises(EngineRejected, match="too long"):
        Reply().advance({"error": {"message": "too long", "code": 400}})
    gone = {"type": "abort", "status_code": 503, "message": "The request queue is full."}
    with pytest.raises(EngineBusy):
        Reply().advance(frame("", [], finish=gone))


def test_a_frame_without_ids_is_broken() -> None:
    with pytest.raises(EngineBroken):
        Reply().advance({"text": "a", "meta_info": {}})


def test_scores_are_one_fewer_than_the_ids() -> None:
    reply = {"meta_info": {"input_token_logprobs": [[None, 1, None], [-2.0, 5, None], [-3.0, 6, None]]}}

    assert input_logprobs([1, 5, 6], reply, vocab_size=64) == [-2.0, -3.0]


@pytest.mark.parametrize("name", [0, 63])
def test_the_last_token_of_a_vocabulary_keeps_its_score_whatever_the_engine_calls_it(name: int) -> None:
    reply = {"meta_info": {"input_token_logprobs": [[None, name, None], [-2.0, name, None], [-3.0, 6, None]]}}

    assert input_logprobs([63, 63, 6], reply, vocab_size=64) == [-2.0, -3.0]


@pytest.mark.parametrize(("sent", "named"), [(62, 0), (63, 1), (0, 63), (63, 62)])
def test_scores_of_another_token_are_never_taken(sent: int, named: int) -> None:
    meta = {"id": "r7", "input_token_logprobs": [[None, 1, None], [-2.0, named, None]]}

    said = rf"token {named} for {sent} at place 1 of 2 \(request r7\)"
    with pytest.raises(EngineBroken, match=said):
        input_logprobs([1, sent], {"meta_info": meta}, vocab_size=64)


@pytest.mark.parametrize(
    "entries",
    [[], [[None, 1, None], [-2.0, 5, None]], [[None, 1, None], [-2.0, 9, None], [-3.0, 6, None]],
     [[None, 1, None], [None, 5, None], [-3.0, 6, None]]],
)  # fmt: skip
def test_incomplete_scores_are_an_error(entries: list[Any]) -> None:
    with pytest.raises(EngineBroken):
        input_logprobs([1, 5, 6], {"meta_info": {"input_token_logprobs": entries}}, vocab_size=64)


SENSELESS = [None, 7, "x", [], [-0.5], [None], {"logprob": -0.5}, ["-0.5", 5], [[-0.5], 5], [True, 5]]


@pytest.mark.parametrize("entry", SENSELESS, ids=str)
def test_a_score_that_is_none_is_the_engines_mistake(entry: Any) -> None:
    entries = [[None, 1, None], entry, [-3.0, 6, None]]
    with pytest.raises(EngineBroken):
        input_logprobs([1, 5, 6], {"meta_info": {"input_token_logprobs": entries}}, vocab_size=64)


@pytest.mark.parametrize(
    "reply",
    [
        {"meta_info": 7},
        {"meta_info": []},
        {"meta_info": {"input_token_logprobs": 7}},
        {"meta_info": {"input_token_logprobs": {"0": 1}}},
        {"meta_info": {"input_token_logprobs": None}},
    ],
    ids=str,
)
def test_scores_in_no_list_are_the_engines_mistake(reply: dict[str, Any]) -> None:
    with pytest.raises(EngineBroken):
        input_logprobs([1, 5, 6], reply, vocab_size=64)


@pytest.mark.parametrize("entry", SENSELESS, ids=str)
def test_a_log_probability_that_is_none_is_said_and_never_padded(entry: Any) -> None:
    reply = Reply()
    chunk = reply.advance(frame("One", [5], logprobs=[entry]))
    assert (chunk.text, chunk.output_ids, chunk.output_logprobs) == ("One", [5], [])
    assert chunk.misaligned


@pytest.mark.parametrize("entry", [*SENSELESS[:-2], [-0.5, "x"], [[-0.5], 5]], ids=str)
def test_a_likely_token_that_is_none_is_the_engines_mistake(entry: Any) -> None:
    one = frame("One", [5])
    one["meta_info"]["output_top_logprobs"] = [[[-0.5, 5, None], entry]]
    with pytest.raises(EngineBroken):
        Reply().advance(one)


@pytest.mark.parametrize(
    "change",
    [
        {"meta_info": "x"},
        {"meta_info": {"finish_reason": "stop"}},
        {"meta_info": {"prompt_tokens": "many"}},
        {"meta_info": {"finish_reason": {"type": "abort", "status_code": "x"}}},
        {"meta_info": {"output_top_logprobs": [7]}},
        {"error": {"code": "x", "message": "no"}},
    ],
    ids=str,
)
def test_a_frame_that_makes_no_sense_is_the_engines_mistake(change: dict[str, Any]) -> None:
    with pytest.raises(EngineBroken):
        Reply().advance({**frame("One", [5]), **change})
