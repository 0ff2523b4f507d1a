"""Clients chat on while every process of `make up` is killed in turn:
what they saw whole is in the ledger, whole."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import openai
import pytest

from tests.e2e.platform_process import PlatformProcess
from tests.tiny_model import build_tiny_model

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("engine")]

BATCH = 4
MAX_TOKENS = 12
QUESTION = "How do I boil an egg?"
COMPLAINT = "That was much too long. Please answer in one short sentence."
# the engine last: it takes longest to come back
VICTIMS = (
    "gateway",
    "relay",
    "worker-judge",
    "worker-ops",
    "worker-train",
    "beat",
    "web",
    "valkey",
    "postgres",
    "engine",
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A reply that a client has read to its end."""

    turn_id: str
    text: str
    version: int


class Client(threading.Thread):
    """Holds one session after another: a question, a complaint;
    keeps what it saw whole, counts what failed."""

    def __init__(self, platform: PlatformProcess) -> None:
        super().__init__(daemon=True)
        self.seen: list[Seen] = []
        self.failed = 0
        self.done = threading.Event()
        self._client = platform.client()

    def run(self) -> None:
        """Chat until `done` is set."""
        while not self.done.is_set():
            session = f"chaos-{uuid.uuid4().hex[:12]}"
            try:
                first = self._ask([QUESTION], session)
                self._ask([QUESTION, first.text, COMPLAINT], session)
            except (
                openai.OpenAIError,
                httpx.HTTPError,
                ValueError,
            ):  # a stream that breaks off is httpx's own
                self.failed += 1
                time.sleep(0.3)

    def _ask(self, said: list[str], session: str) -> Seen:
        raw = self._client.chat.completions.with_raw_response.create(
            model="default",
            messages=[
                {"role": "assistant" if number % 2 else "user", "content": text}  # type: ignore[misc]
                for number, text in enumerate(said)
            ],
            max_tokens=MAX_TOKENS,
            stream=True,
            extra_headers={"X-Session-Id": session},
        )
        text, finish = "", None
        for chunk in raw.parse():
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
        if finish is None:
            raise ValueError("the stream broke off")
        seen = Seen(raw.headers["X-Turn-Id"], text, int(raw.headers["X-Adapter-Version"]))
        self.seen.append(seen)
        return seen


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformProcess]:
    folder = tmp_path_factory.mktemp("chaos")
    started = PlatformProcess(
        folder / "home",
        MODEL_PATH=str(build_tiny_model(folder / "model")),
        BASE_MODEL_NAME="tiny",
        ENGINE_DTYPE="float32",
        ATTUNE_DEVICE="cpu",
        TRAINER_DEVICE="cpu",
        TRAINING_BATCH=str(BATCH),
        SHADOW_ENABLED="false",
        LEASE_S="10",
    )
    try:
        started.start()
        yield started
    finally:
        started.stop()


def test_what_a_client_saw_whole_is_in_the_ledger_and_trained_on_once_whatever_is_killed(
    platform: PlatformProcess,
) -> None:
    clients = [Client(platform) for _ in range(2)]
    for client in clients:
        client.start()
    _until_more_is_seen(platform, clients)
    for victim in VICTIMS:
        before = _numbers(platform)
        os.kill(before[victim], signal.SIGKILL)
        platform.until(
            lambda before=before, victim=victim: _numbers(platform).get(victim) not in (None, before[victim]),  # type: ignore[misc]
            within_s=60,
            what=f"{victim} to be started again",
        )
        _until_more_is_seen(platform, clients)
    reached = _version(platform)
    platform.until(
        lambda: _version(platform) > reached, within_s=180, what="the loop to make one more version"
    )
    for client in clients:
        client.done.set()
    for client in clients:
        client.join(60)

    seen = {one.turn_id: one for client in clients for one in client.seen}
    rows = platform.rows(
        "SELECT turn.id::text, turn.state, turn.reply, turn.usage, coalesce(version.number, 0) AS version,"
        " cardinality(output_ids) AS ids, cardinality(output_logprobs) AS logprobs"
        " FROM conversations_turn turn LEFT JOIN adapters_adapterversion version ON version.id = turn.version_id"
        " WHERE turn.id = ANY(%s::uuid[])",
        list(seen),
    )
    assert len(rows) == len(seen) > 2 * len(VICTIMS)
    for row in rows:
        assert row["state"] == "complete"
        # Postgres has no NUL, which random weights write now and then
        assert row["reply"]["content"] == seen[row["id"]].text.replace("\0", "\ufffd")
        assert row["version"] == seen[row["id"]].version
        assert row["ids"] == row["logprobs"] == row["usage"]["completion_tokens"] > 0
    _no_sample_was_trained_on_twice_and_every_version_has_its_run(platform)


def _no_sample_was_trained_on_twice_and_every_version_has_its_run(platform: PlatformProcess) -> None:
    runs = platform.rows(
        "SELECT run.id, count(sample.id) AS samples FROM learning_trainingrun run"
        " LEFT JOIN learning_sample sample ON sample.run_id = run.id AND sample.state = 'consumed'"
        " WHERE run.state = 'succeeded' GROUP BY run.id"
    )
    assert len(runs) >= 1
    assert {run["samples"] for run in runs} == {BATCH}
    versions = platform.rows("SELECT run_id FROM adapters_adapterversion")
    assert sorted(version["run_id"] for version in versions) == sorted(run["id"] for run in runs)
    stray = platform.rows(
        "SELECT 1 FROM learning_sample sample JOIN learning_trainingrun run ON run.id = sample.run_id"
        " WHERE sample.state = 'consumed' AND run.state NOT IN ('succeeded', 'no_op')"
    )
    assert stray == []


def _numbers(platform: PlatformProcess) -> dict[str, int]:
    found: dict[str, int] = json.loads(platform.home.processes.read_text())
    return found


def _version(platform: PlatformProcess) -> int:
    rows = platform.rows("SELECT coalesce(max(number), 0) AS newest FROM adapters_adapterversion")
    return int(rows[0]["newest"])


def _until_more_is_seen(platform: PlatformProcess, clients: list[Client]) -> None:
    """Wait until every client has read two more replies to their ends."""
    wanted = [len(client.seen) + 2 for client in clients]
    platform.until(
        lambda: all(len(client.seen) >= count for client, count in zip(clients, wanted, strict=True)),
        within_s=180,
        what="the clients to be answered again",
    )
