"""The real SGLang server on a tiny model: what the fake one only claims to do."""

import asyncio
import json
import os
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings

from apps.accounts.models import Tenant
from apps.adapters import publishing, services
from apps.adapters.models import AdapterVersion, Policy
from apps.engines.chat import chat_format
from apps.engines.client import EngineClient
from apps.engines.models import Engine as EngineRow
from apps.engines.models import EngineState, LoadedAdapter
from apps.engines.replies import AdapterMissing, Chunk, EngineRejected
from apps.engines.selectors import pick_engine
from apps.engines.services import reconcile
from apps.engines.slots import AdapterSlots, Seat
from apps.engines.slots.sharing import shared_reply
from embedded import processes
from embedded.engine import Engine
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.adapters.files import RANK, Arrays, directory_of, hash_of, write_adapter
from tests.engines import Engines
from tests.tiny_model import VOCAB, build_tiny_model

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("engine")]

PROMPTS = (
    [1, 85, 91, 294, 71, 79, 201, 2, 60, 61],
    [1, 70, 71, 72, 0, VOCAB - 1, 75, 76, VOCAB - 1, 78, 79, 80],
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("engine-model") / "tiny")


@pytest.fixture
def engine(engine_process: Engines, model: Path, settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    running = engine_process(model)
    settings.MODEL_PATH = model
    settings.ENGINE_URLS = [running.url]
    settings.ENGINE_API_KEY, settings.ENGINE_ADMIN_KEY = running.api_key, running.admin_key
    settings.ADAPTER_STORE = tmp_path / "adapters"
    settings.LORA_RANK = RANK
    settings.PROBE_TOLERANCE = 0.001  # float32 on both sides
    chat_format.cache_clear()
    yield running
    chat_format.cache_clear()


def client_of(engine: Engine) -> EngineClient:
    return EngineClient(engine.url, engine.api_key, engine.admin_key, timeout_s=60)


def smaller(arrays: Arrays) -> None:
    for name in arrays:
        arrays[name] = arrays[name] * np.float32(0.1)


def reference(model: Path, adapter: Path | None) -> list[list[float]]:
    """Score PROMPTS with transformers and PEFT."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    network: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    if adapter is not None:
        network = PeftModel.from_pretrained(network, str(adapter))
    scored = []
    for ids in PROMPTS:
        with torch.no_grad():
            logits = network(torch.tensor([ids])).logits.log_softmax(-1)
        scored.append(logits[0, :-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist())
    return scored


def write_real_adapter(directory: Path, model: Path, seed: int) -> str:
    """Write an adapter with the values that PEFT computes for it as its probe."""
    write_adapter(directory, model, seed=seed, change=smaller)
    with_adapter, base = reference(model, directory), reference(model, None)
    rows = [
        {"ids": ids, "logprobs": a, "base_logprobs": b}
        for ids, a, b in zip(PROMPTS, with_adapter, base, strict=True)
    ]
    (directory / "manifest.json").write_text(json.dumps({"probe": rows}))
    return hash_of(directory)


def version_of(
    policy: Policy, store: Path, model: Path, parent: AdapterVersion | None, seed: int
) -> AdapterVersion:
    directory = directory_of(store, policy, parent.number + 1 if parent else 1)
    sha256 = write_real_adapter(directory, model, seed)
    return services.create_version(
        policy=policy,
        parent=parent,
        run_id=uuid.uuid4(),
        artefact_dir=directory,
        sha256=sha256,
        rank=RANK,
        alpha=8,
        metrics={},
    )


async def test_scores_equal_transformers_and_peft(engine: Engine, model: Path, tmp_path: Path) -> None:
    write_adapter(tmp_path / "one", model, seed=1, change=smaller)
    name = f"p{uuid.uuid4().hex[:8]}-v1-aa"
    async with client_of(engine) as client:
        await client.load(name, str(tmp_path / "one"))
        engines = [[await client.score(ids, lora) for ids in PROMPTS] for lora in (name, None)]
        await client.unload(name)
        with pytest.raises(AdapterMissing):
            # forgotten by us and never by the engine, which would load it again from where it was
            await client.score(PROMPTS[0], f"{name}-never")

    expected = [reference(model, tmp_path / "one"), reference(model, None)]
    for ours, theirs in zip(engines, expected, strict=True):
        for row, wanted in zip(ours, theirs, strict=True):
            assert row == pytest.approx(wanted, abs=1e-4)
    assert max(abs(a - b) for a, b in zip(engines[0][0], engines[1][0], strict=True)) > 0.01


async def test_a_reply_is_scored_alike_with_its_prompt_from_the_cache(engine: Engine) -> None:
    prompt, reply = list(range(100, 150)), [7, 8, 9, 10]
    async with client_of(engine) as client:
        whole = await client.score([*prompt, *reply])
        for _ in range(2):
            assert await client.score([*prompt, *reply], first=len(prompt)) == pytest.approx(
                whole[-len(reply) :], abs=1e-4
            )


async def test_sampled_logprobs_are_of_the_distribution_at_that_temperature(engine: Engine) -> None:
    sampling = {"max_new_tokens": 8, "temperature": 0.7, "ignore_eos": True}
    async with client_of(engine) as client:
        chunks = [chunk async for chunk in client.generate(input_ids=PROMPTS[0], sampling=sampling)]
        ids = [token for chunk in chunks for token in chunk.output_ids]
        sampled = [value for chunk in chunks for value in chunk.output_logprobs]
        at_one = (await client.score([*PROMPTS[0], *ids]))[-len(ids) :]

    assert (len(ids), len(sampled), chunks[-1].finish_reason, chunks[-1].misaligned) == (8, 8, "length", "")
    assert "".join(chunk.text for chunk in chunks) == chat_format().decode(ids)
    assert sampled != pytest.approx(at_one, abs=0.01)  # so a learner must divide by the same temperature


async def test_leaving_a_reply_frees_the_engine_within_a_second(engine: Engine) -> None:
    asked = {"input_ids": PROMPTS[0], "sampling": {"max_new_tokens": 1900, "ignore_eos": True}}
    async with client_of(engine) as client:
        async with aclosing(client.generate(**asked)) as chunks:
            async for _ in chunks:
                break
        left = time.monotonic()
        while await _running(client) and time.monotonic() < left + 10:
            await asyncio.sleep(0.02)
        assert time.monotonic() - left < 1.0


async def _running(client: EngineClient) -> int:
    loads = (await client._ask("GET", "/v1/loads"))["loads"]
    return sum(load["num_running_reqs"] + load["num_waiting_reqs"] for load in loads)


async def test_a_path_that_is_not_there_is_refused(engine: Engine, tmp_path: Path) -> None:
    async with client_of(engine) as client:
        with pytest.raises(EngineRejected):
            await client.load("p0-v1-gone", str(tmp_path / "gone"))
        assert "p0-v1-gone" not in await client.loaded()


@pytest.fixture
def policy(engine: Engine, transactional_db: None) -> Iterator[Policy]:
    """A policy on the ready engine; the test runs in its tenant's scope."""
    with system_scope("test"):
        tenant = Tenant.objects.create(slug=f"t-{uuid.uuid4().hex[:8]}", name="Test")
    reconcile()
    with tenant_scope(tenant.pk):
        yield services.create_policy(tenant=tenant, name="default")


def test_versions_are_published_and_rolled_back(
    engine: Engine, policy: Policy, model: Path, settings: Settings
) -> None:
    store: Path = settings.ADAPTER_STORE
    first = version_of(policy, store, model, None, seed=1)
    done = publishing.publish(first.pk)
    assert (done.outcome, done.reason) == ("live", "")
    second = version_of(policy, store, model, first, seed=2)
    assert publishing.publish(second.pk).outcome == "live"
    measured = LoadedAdapter.objects.get(adapter__served_name=second.served_name).probe
    assert measured["distance"] < 1e-4
    assert measured["share"] == pytest.approx(1.0, abs=0.01)

    # the trainer's values of another adapter: what is loaded is not what was meant
    third = version_of(policy, store, model, second, seed=3)
    manifest = store / third.path / "manifest.json"
    manifest.write_text((store / first.path / "manifest.json").read_text())
    refused = publishing.publish(third.pk)
    assert refused.outcome == "refused"
    assert "nats" in refused.reason

    services.rollback(tenant=policy.tenant.slug, policy="default", number=1)
    assert Policy.objects.get(pk=policy.pk).live_id == first.pk
    assert pick_engine(first.served_name) == engine.url


@pytest.mark.long
def test_an_engine_that_died_comes_back_with_the_same_answers(
    engine: Engine, policy: Policy, engine_process: Engines, model: Path, settings: Settings
) -> None:
    version = version_of(policy, settings.ADAPTER_STORE, model, None, seed=1)
    publishing.publish(version.pk)
    before = LoadedAdapter.objects.get(adapter__served_name=version.served_name).probe

    engine_process.kill(engine)
    reconcile()
    assert EngineRow.objects.get(url=engine.url).state == EngineState.LOST

    again = engine_process(model)
    settings.ENGINE_URLS = [again.url]
    settings.ENGINE_API_KEY, settings.ENGINE_ADMIN_KEY = again.api_key, again.admin_key
    (one,) = reconcile()
    assert (one.state, one.proven) == (EngineState.READY, [version.served_name])
    assert pick_engine(version.served_name) == again.url
    back = LoadedAdapter.objects.get(adapter__served_name=version.served_name, engine__url=again.url).probe
    assert back["distance"] == pytest.approx(before["distance"], abs=1e-5)


def opposite(arrays: Arrays) -> None:
    for name in arrays:
        if "lora_B" in name:
            arrays[name] = -arrays[name]


async def greedy(client: EngineClient, ids: list[int], adapter: str, tokens: int = 6) -> list[int]:
    sampling = {"max_new_tokens": tokens, "temperature": 0.0, "ignore_eos": True}
    chunks = client.generate(input_ids=ids, sampling=sampling, adapter=adapter)
    return [token async for chunk in chunks for token in chunk.output_ids]


async def load_pair(client: EngineClient, model: Path, folder: Path) -> tuple[str, str]:
    """Load an adapter and the one of opposite sign."""
    mark = uuid.uuid4().hex[:8]
    names = f"p{mark}-v1-plus", f"p{mark}-v1-minus"
    for name, change in zip(names, (None, opposite), strict=True):
        write_adapter(folder / name, model, seed=5, change=change)
        await client.load(name, str(folder / name))
    return names


async def test_scale_survives_an_eviction_and_a_reload(engine: Engine, model: Path, tmp_path: Path) -> None:
    async with client_of(engine) as client:
        name, other = await load_pair(client, model, tmp_path)
        before = await client.score(PROMPTS[0], name)
        assert before != pytest.approx(await client.score(PROMPTS[0], other), abs=0.05)

        for number in range(5):  # more than a batch has places for: out of the engine's buffers
            write_adapter(tmp_path / f"more-{number}", model, seed=10 + number)
            await client.load(f"{name}{number}", str(tmp_path / f"more-{number}"))
            await client.score(PROMPTS[0], f"{name}{number}")
        assert await client.score(PROMPTS[0], name) == pytest.approx(before, abs=1e-5)

        await client.unload(name)
        await client.load(name, str(tmp_path / name))
        assert await client.score(PROMPTS[0], name) == pytest.approx(before, abs=1e-5)
        for loaded in await client.loaded():
            await client.unload(loaded)


async def test_more_adapters_at_once_than_a_batch_takes_are_all_answered_by_their_own(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    async with client_of(engine) as client:
        names = [f"p{uuid.uuid4().hex[:8]}-v1-aa" for _ in range(8)]
        for number, name in enumerate(names):
            write_adapter(tmp_path / name, model, seed=30 + number)
            await client.load(name, str(tmp_path / name))
        alone = {name: await greedy(client, PROMPTS[0], name) for name in names}
        assert len({tuple(ids) for ids in alone.values()}) > 4

        slots = AdapterSlots(capacity=capacity, redis_url=None)

        async def ask(name: str) -> tuple[str, list[int]]:
            async with slots.seat(engine=engine.url, adapter=name, tenant=name):
                return name, await greedy(client, PROMPTS[0], name)

        answers = await asyncio.gather(*(ask(names[i % 8]) for i in range(48)))
        assert [name for name, ids in answers if ids != alone[name]] == []
        await slots.close()
        for name in names:
            await client.unload(name)


async def capacity(engine: str) -> int:
    del engine
    return 4


@pytest.mark.long
async def test_a_thousand_mixed_requests_each_answered_by_their_own_adapter(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    async with client_of(engine) as client:
        names = await load_pair(client, model, tmp_path)
        prompts = [[1, *range(60 + number, 80 + number)] for number in range(10)]
        own = {
            (name, number): await greedy(client, ids, name)
            for name in names
            for number, ids in enumerate(prompts)
        }
        differing = [n for n in range(10) if own[names[0], n] != own[names[1], n]]
        assert len(differing) >= 8

        wrong: list[tuple[str, int]] = []
        work = iter([(names[i % 2], differing[i // 2 % len(differing)]) for i in range(1000)])

        async def lane() -> None:
            for name, number in work:
                if await greedy(client, prompts[number], name) != own[name, number]:
                    wrong.append((name, number))

        await asyncio.gather(*(lane() for _ in range(8)))
        assert wrong == []
        for name in names:
            await client.unload(name)


@pytest.mark.long
async def test_five_hundred_load_cycles_leave_the_memory_flat(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    write_adapter(tmp_path / "one", model, seed=1, change=smaller)
    resident: dict[int, int] = {}
    async with client_of(engine) as client:
        for cycle in range(501):
            name = f"p{cycle:08x}-v1-aa"
            await client.load(name, str(tmp_path / "one"))
            await client.score(PROMPTS[0], name)
            await client.unload(name)
            if cycle in {100, 300, 500}:
                resident[cycle] = memory_of(engine)
        assert str(tmp_path / "one") not in (await client.loaded()).values()

    # a cycle that kept its adapter would add more than this, and twice as much in twice the cycles
    size = sum(file.stat().st_size for file in (tmp_path / "one").iterdir())
    assert resident[500] - resident[100] < 400 * size / 4


def memory_of(engine: Engine) -> int:
    """Return the resident bytes of a server and its children."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes()
            if f"{engine.port}.yaml".encode() in command:
                pids = [int(directory.name), *processes.descendants(int(directory.name))]
                return sum(_resident(pid) for pid in pids)
        except OSError:
            continue
    raise AssertionError("the server is not there")


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Pressed(Seat):
    """A seat that is asked back after so many tokens, always."""

    def __init__(self, least: int) -> None:
        super().__init__(None, "", self._enter_again, least)
        self.pauses = 0

    @property
    def asked_back(self) -> bool:
        return True

    async def _enter_again(self) -> None:
        self.pauses += 1


async def test_a_reply_that_pauses_for_others_is_the_reply_that_does_not(
    engine: Engine, model: Path, tmp_path: Path
) -> None:
    write_adapter(tmp_path / "one", model, seed=1, change=smaller)
    name = f"p{uuid.uuid4().hex[:8]}-v1-aa"
    sampling = {"max_new_tokens": 300, "temperature": 0.0, "ignore_eos": True}
    async with client_of(engine) as client:
        await client.load(name, str(tmp_path / "one"))
        asked: dict[str, Any] = {
            "input_ids": PROMPTS[0],
            "sampling": sampling,
            "adapter": name,
            "top_logprobs": 2,
        }
        whole = await collected(client.generate(**asked))
        for least in (1, 5):
            seat = Pressed(least)
            sliced = await collected(shared_reply(client, seat, **asked))
            assert seat.pauses >= 1
            assert (sliced["ids"], sliced["text"], sliced["end"]) == (whole["ids"], whole["text"], "length")
            assert sliced["logprobs"] == pytest.approx(whole["logprobs"], abs=1e-6)
            assert [[token for token, _ in one] for one in sliced["top"]] == [
                [token for token, _ in one] for one in whole["top"]
            ]
        await client.unload(name)


async def test_a_stop_string_across_a_pause_ends_the_reply_as_without_one(engine: Engine) -> None:
    sampling = {"max_new_tokens": 24, "temperature": 0.0, "ignore_eos": True}
    async with client_of(engine) as client:
        asked: dict[str, Any] = {"input_ids": PROMPTS[1], "sampling": sampling, "adapter": None}
        text = (await collected(client.generate(**asked)))["text"]
        for begin in range(4, 10):
            asked["sampling"] = {**sampling, "stop": [text[begin : begin + 6]]}
            whole = await collected(client.generate(**asked))
            sliced = await collected(shared_reply(client, Pressed(1), **asked))
            assert whole["end"] == "stop"
            assert (sliced["ids"], sliced["text"], sliced["end"]) == (
                whole["ids"],
                whole["text"],
                whole["end"],
            )


async def collected(source: AsyncIterator[Chunk]) -> dict[str, Any]:
    """Return a whole reply: ids, logprobs, top, text, end."""
    chunks = [chunk async for chunk in source]
    return {
        "ids": [token for chunk in chunks for token in chunk.output_ids],
        "logprobs": [value for chunk in chunks for value in chunk.output_logprobs],
        "top": [one for chunk in chunks for one in chunk.top_logprobs],
        "text": "".join(chunk.text for chunk in chunks),
        "end": chunks[-1].finish_reason,
    }
