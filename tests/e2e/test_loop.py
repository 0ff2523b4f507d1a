"""The loop, for real: chat, judged, trained, swapped, served by the new version; and back."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pytest

from tests.e2e.conftest import BATCH
from tests.e2e.platform_process import PlatformProcess

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("engine")]

QUESTION = "How do rainbows form?"
COMPLAINT = "That was much too long. Please answer in one short sentence."
MAX_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, with what its headers and its usage say."""

    text: str
    version: int
    turn_id: str
    completion_tokens: int


def ask(
    platform: PlatformProcess,
    *said: str,
    model: str,
    temperature: float = 0.7,
    session: str | None = None,
) -> Answer:
    """Ask without streaming; `said` alternates between user and assistant, from the user on."""
    raw = platform.client().chat.completions.with_raw_response.create(
        model=model,
        messages=[
            {"role": "assistant" if number % 2 else "user", "content": text}  # type: ignore[misc]
            for number, text in enumerate(said)
        ],
        max_tokens=MAX_TOKENS,
        temperature=temperature,
        # what is learned is shown by versions that are told nothing
        extra_headers={"X-Memory": "off", **({"X-Session-Id": session} if session else {})},
    )
    completion = raw.parse()
    assert completion.usage is not None
    return Answer(
        completion.choices[0].message.content or "",
        int(raw.headers["X-Adapter-Version"]),
        raw.headers["X-Turn-Id"],
        completion.usage.completion_tokens,
    )


def complain(platform: PlatformProcess, model: str) -> list[Answer]:
    """Hold as many sessions as a step needs samples: a question, then a complaint.

    Returns the first replies.
    """
    first = []
    for _ in range(BATCH):
        session = f"e2e-{uuid.uuid4().hex[:12]}"
        answer = ask(platform, QUESTION, model=model, session=session)
        ask(platform, QUESTION, answer.text, COMPLAINT, model=model, session=session)
        first.append(answer)
    return first


def greedy(platform: PlatformProcess, model: str) -> Answer:
    """Return what the model says without chance."""
    return ask(platform, "What is an earthquake?", model=model, temperature=0.0)


def test_a_complaint_becomes_a_version_that_is_served_and_can_be_taken_back(
    platform: PlatformProcess,
) -> None:
    platform.add_policy("learns")
    base = greedy(platform, "learns")
    assert base.version == 0

    complained = complain(platform, "learns")
    platform.until(
        lambda: greedy(platform, "learns").version == 1, within_s=120, what="version 1 to be served"
    )

    # what the engine wrote is in the ledger, to the token
    turns = platform.rows(
        "SELECT id::text, state, prompt_ids, output_ids, output_logprobs, spans, next_state, version_id"
        " FROM conversations_turn WHERE id = ANY(%s::uuid[])",
        [answer.turn_id for answer in complained],
    )
    by_id = {turn["id"]: turn for turn in turns}
    assert sorted(by_id) == sorted(answer.turn_id for answer in complained)
    for answer in complained:
        turn = by_id[answer.turn_id]
        assert turn["state"] == "complete"
        assert turn["version_id"] is None  # version 0
        assert len(turn["prompt_ids"]) > 0
        assert len(turn["output_ids"]) == len(turn["output_logprobs"]) == answer.completion_tokens
        assert all(-100 < logprob <= 0 for logprob in turn["output_logprobs"])
        assert turn["spans"] == [[0, "tiny"]]
        assert turn["next_state"] == [{"role": "user", "content": COMPLAINT}]

    # judged, with a hint, and consumed by the run that made the version
    samples = platform.rows(
        "SELECT sample.turn_id::text, sample.state, jsonb_array_length(hints) AS hints, version.number"
        " FROM learning_sample sample JOIN learning_trainingrun run ON run.id = sample.run_id"
        " JOIN adapters_adapterversion version ON version.id = run.version_id"
        " JOIN adapters_policy policy ON policy.id = run.policy_id WHERE policy.name = 'learns'"
    )
    assert sorted(sample["turn_id"] for sample in samples) == sorted(by_id)
    assert {(sample["state"], sample["number"]) for sample in samples} == {("consumed", 1)}
    assert all(sample["hints"] >= 1 for sample in samples)

    # engine and trainer mean the same by a token's log-probability at the sampled temperature
    run = platform.rows(
        "SELECT run.state, run.metrics FROM learning_trainingrun run"
        " JOIN adapters_policy policy ON policy.id = run.policy_id WHERE policy.name = 'learns'"
    )
    assert [row["state"] for row in run] == ["succeeded"]
    assert run[0]["metrics"]["train_rollout_logprob_abs_diff"] <= 1e-3

    new = greedy(platform, "learns")
    assert new.text != base.text
    assert greedy(platform, "learns@0").text == base.text

    platform.manage("rollback", "--tenant", platform.given["tenant"], "learns", "0")
    back = greedy(platform, "learns")
    assert (back.version, back.text) == (0, base.text)


def test_a_learning_rate_of_zero_changes_nothing_that_is_served(platform: PlatformProcess) -> None:
    platform.add_policy("still", config={"lr": 0})
    before = greedy(platform, "still")
    complain(platform, "still")

    query = (
        "SELECT run.state, run.reason, run.version_id FROM learning_trainingrun run"
        " JOIN adapters_policy policy ON policy.id = run.policy_id WHERE policy.name = 'still'"
    )
    platform.until(
        lambda: [row["state"] for row in platform.rows(query)] == ["no_op"],
        within_s=90,
        what="the run to end",
    )
    assert platform.rows(query)[0]["version_id"] is None
    assert platform.rows(query)[0]["reason"] != ""
    versions = platform.rows(
        "SELECT 1 FROM adapters_adapterversion version JOIN adapters_policy policy ON policy.id = version.policy_id"
        " WHERE policy.name = 'still'"
    )
    assert versions == []
    after = greedy(platform, "still")
    assert (after.version, after.text) == (before.version, before.text) == (0, before.text)
