"""Calls of many requests in one statement: each keeps its own tenant and its own failure."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from apps.conversations.canonical import canonical_message, chain
from apps.conversations.services import Admitted, Generation, TurnRequest, admitting, completing
from apps.engines.chat import chat_format
from apps.gateway import ledger as ledger_module
from apps.gateway.ledger import Ledger
from kernel.calls import Call, Plan, call
from kernel.errors import NotFound
from tests.tenants import Somebody, add_somebody


@pytest.fixture
def stranger(ledger: None) -> Somebody:
    return add_somebody("other")


@pytest.fixture
def _model(chat_model: Any, settings: Any) -> Any:
    settings.MODEL_PATH = chat_model
    chat_format.cache_clear()
    yield
    chat_format.cache_clear()


@pytest.fixture
async def one_lane(ledger: None) -> AsyncIterator[Ledger]:
    made = Ledger(connections=1)
    yield made
    await made.close()


def only(asked: Call) -> Plan[dict[str, Any]]:
    return (yield asked)


def look_up(public_id: str) -> Call:
    return call("attune_look_up", {"public_id": public_id, "policy_name": None})


def admission(somebody: Somebody, text: str) -> Plan[Any]:
    message = canonical_message({"role": "user", "content": text})
    return admitting(
        caller=somebody.caller,
        policy_id=somebody.policy.id,
        version_id=None,
        request=TurnRequest(messages=[message], body_sha256="0" * 64),
        links=chain([message]),
        engine_id=None,
    )


async def test_calls_that_wait_go_together(
    one_lane: Ledger, somebody: Somebody, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    answered = ledger_module._answered

    async def counted(connection: Any, batch: Any) -> None:
        sizes.append(len(batch))
        await answered(connection, batch)

    monkeypatch.setattr(ledger_module, "_answered", counted)

    answers = await asyncio.gather(*(one_lane.run(only(look_up(somebody.key.public_id))) for _ in range(50)))

    assert {answer["key"]["id"] for answer in answers} == {str(somebody.key.id)}
    assert sum(sizes) == 50
    assert max(sizes) == 32


async def test_one_that_fails_fails_alone(one_lane: Ledger, somebody: Somebody) -> None:
    good = {"tenant": somebody.tenant.id, "turn": somebody.tenant.id, "output_ids": "{}"}
    bad = {**good, "turn": "no identifier"}

    answers = await asyncio.gather(
        *(one_lane.run(only(call("attune_finish", asked))) for asked in (good, bad, good)),
        return_exceptions=True,
    )

    assert answers[0] == answers[2] == {"state": None}
    assert isinstance(answers[1], psycopg.Error)


async def test_a_failure_does_not_say_what_was_written(one_lane: Ledger, somebody: Somebody) -> None:
    asked = {"tenant": somebody.tenant.id, "turn": somebody.tenant.id, "side": "I was born in Ulm"}

    with pytest.raises(psycopg.DataError) as raised:
        await one_lane.run(only(call("attune_admit", asked)))

    assert "Ulm" in (raised.value.diag.message_primary or "")
    assert str(raised.value) == "invalid input syntax for type boolean: …"


@pytest.mark.usefixtures("_model")
async def test_turns_of_two_tenants_in_one_statement_stay_apart(
    one_lane: Ledger, somebody: Somebody, stranger: Somebody
) -> None:
    admitted = await asyncio.gather(
        *(one_lane.run(admission(who, f"hi {i}")) for i in range(5) for who in (somebody, stranger))
    )

    assert all(isinstance(one, Admitted) for one in admitted)
    for who, theirs in ((somebody, admitted[::2]), (stranger, admitted[1::2])):
        turns = await asyncio.to_thread(who.turns)
        assert {turn.id for turn in turns} == {one.turn_id for one in theirs}
        assert {turn.tenant_id for turn in turns} == {who.tenant.id}


@pytest.mark.usefixtures("_model")
async def test_a_turn_of_another_tenant_is_not_there(
    one_lane: Ledger, somebody: Somebody, stranger: Somebody
) -> None:
    mine = await one_lane.run(admission(somebody, "hi"))
    generation = Generation(text="x", output_ids=[5], output_logprobs=[-1.0], finish_reason="stop")

    with pytest.raises(NotFound):
        await one_lane.run(
            completing(tenant_id=stranger.tenant.id, turn_id=mine.turn_id, generation=generation)
        )
    assert [turn.state for turn in await asyncio.to_thread(somebody.turns)] == ["pending"]


@pytest.mark.usefixtures("_model")
async def test_an_admission_whose_answer_was_lost_is_made_once(one_lane: Ledger, somebody: Somebody) -> None:
    plan = admission(somebody, "hi")
    place = next(plan)
    admit = plan.send(await one_lane.run(only(place)))

    answers = [await one_lane.run(only(admit)) for _ in range(2)]

    assert answers == [{"conflict": False}] * 2
    assert len(await asyncio.to_thread(somebody.turns)) == 1


async def test_connections_that_are_dropped_are_made_again(
    one_lane: Ledger, somebody: Somebody, owner_connection: psycopg.Connection
) -> None:
    await one_lane.run(only(look_up(somebody.key.public_id)))
    await asyncio.to_thread(
        owner_connection.execute,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE 'SELECT attune_look_up%'",
    )

    answer = await one_lane.run(only(look_up(somebody.key.public_id)))

    assert answer["key"]["id"] == str(somebody.key.id)
