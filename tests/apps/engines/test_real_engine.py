"""The real SGLang server on a tiny model: what the fake one only claims to do."""

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.accounts.models import Tenant
from apps.adapters import publishing, services
from apps.adapters.models import Policy
from apps.engines.chat import chat_format
from apps.engines.client import EngineClient
from apps.engines.models import Engine as EngineRow
from apps.engines.models import EngineState, LoadedAdapter
from apps.engines.replies import AdapterMissing, EngineRejected
from apps.engines.selectors import pick_engine
from apps.engines.services import reconcile
from embedded.engine import Engine
from kernel.tenancy import system_scope, tenant_scope
from tests.apps.adapters.files import write_adapter
from tests.apps.engines.real_engine import PROMPTS, client_of, reference, smaller, version_of
from tests.engines import Engines

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("engine")]


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


async def test_a_whole_reply_says_when_its_first_token_was_there(engine: Engine) -> None:
    sampling = {"max_new_tokens": 200, "ignore_eos": True}
    asked = time.monotonic()
    async with client_of(engine) as client:
        (whole,) = [
            chunk async for chunk in client.generate(input_ids=PROMPTS[0], sampling=sampling, stream=False)
        ]
        waited = time.monotonic() - asked
        streamed = [chunk async for chunk in client.generate(input_ids=PROMPTS[0], sampling=sampling)]

    assert len(whole.output_ids) == 200
    assert whole.first_token_ago_s is not None
    assert waited / 2 < whole.first_token_ago_s < waited  # 199 of 200 tokens came after it
    assert {chunk.first_token_ago_s for chunk in streamed} == {0.0}


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
    loads = (await client._wire.ask("GET", "/v1/loads"))["loads"]
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
