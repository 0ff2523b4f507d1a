"""Two gateway processes and two real engines: the whole contract at once."""

import asyncio
import itertools
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from django.db import connection

from apps.adapters.models import AdapterVersion
from apps.conversations.models import Session
from apps.engines.loading import client_of
from apps.engines.models import Engine as EngineRow
from apps.engines.models import EngineState
from apps.keys.services import create_key, revoke_key, set_limit
from kernel.tenancy import tenant_scope
from tests.api.gateway_process import GatewayProcess
from tests.api.real_fleet import (
    FORCED,
    LONG,
    SCHEMA,
    Answer,
    Fleet,
    ask,
    by_id,
    is_paint,
    one_for_each,
    read,
    said,
)
from tests.engines import Engines
from tests.tenants import Somebody, add_somebody

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.xdist_group("engine")]

VERSIONS = 3
WAYS: dict[str, dict[str, Any]] = {
    "whole": {"max_tokens": 16},
    "stream": {"max_tokens": 48, "stream": True, "logprobs": True},
    "call": FORCED,
    "streamed call": FORCED | {"stream": True},
    "form": {"response_format": SCHEMA, "max_tokens": 1200},  # a grammar lets a model write blanks
    "side": {"max_tokens": 16, "headers": {"X-Turn-Type": "side"}},
    "responses": {"input": "What is a rainbow?", "max_output_tokens": 16},
    "streamed responses": {"input": "What is a rainbow?", "max_output_tokens": 16, "stream": True},
}


def converse(gateways: list[GatewayProcess], somebody: Somebody, session: str) -> list[Answer]:
    """Hold a conversation of three turns, each at the other gateway than the one before."""
    messages, answers = said(), []
    for gateway in itertools.islice(itertools.cycle(gateways), 3):
        answers.append(
            ask(gateway, somebody, messages=messages, max_tokens=12, headers={"X-Session-Id": session})
        )
        messages = [*messages, {"role": "assistant", "content": answers[-1].text}, *said()]
    return answers


class Leaver:
    """Asks with a key, on both gateways in turn, until it is refused; whose key is taken away meanwhile."""

    def __init__(self, somebody: Somebody) -> None:
        self.key, self.secret = create_key(
            tenant=somebody.tenant, user=somebody.user, name="leaves", scopes=("chat",)
        )
        self.somebody = Somebody(somebody.tenant, somebody.user, somebody.policy, self.key, self.secret)
        self.answers: list[Answer] = []
        self.served = threading.Event()

    def go_on(self, gateways: list[GatewayProcess]) -> None:
        for gateway in itertools.cycle(gateways):
            self.answers.append(ask(gateway, self.somebody, max_tokens=4))
            if self.answers[-1].status != 200:
                return
            if len(self.answers) >= 2:
                self.served.set()


def test_the_whole_contract_at_once_on_two_gateways_and_two_engines(
    fleet: Fleet, engine_process: Engines
) -> None:
    gateways = [fleet.gateway(), fleet.gateway()]
    both = acme, globex = one_for_each(fleet)
    limited = add_somebody("limited")
    set_limit(tenant_id=limited.tenant.id, key_id=limited.key.id, actor="test", requests_per_minute=1)
    leaver = Leaver(acme)
    versions = {somebody.tenant.id: [fleet.publish(somebody, None, 1)] for somebody in both}
    firsts = {somebody.tenant.id: [ask(gateways[1], somebody, max_tokens=32)] for somebody in both}
    swapped = threading.Event()

    def lane(number: int) -> list[tuple[str, Answer]]:
        """Ask in every way, at both gateways, for as long as versions change and twice at least."""
        done: list[tuple[str, Answer]] = []
        for turn, (name, way) in enumerate(itertools.cycle(WAYS.items())):
            if turn >= 2 * len(WAYS) and swapped.is_set():
                break
            done.append((name, ask(gateways[(number // 2 + turn) % 2], both[number % 2], **way)))
        return done

    with ThreadPoolExecutor(16) as pool:
        lanes = [pool.submit(lane, number) for number in range(4)]
        talks = [
            (somebody, pool.submit(converse, gateways, somebody, f"session {number}"))
            for number in range(3)
            for somebody in both
        ]
        few = [pool.submit(ask, gateways[i % 2], limited, max_tokens=4) for i in range(6)]
        once = said("Once, please.")
        same = [
            pool.submit(ask, gateway, acme, messages=once, headers={"Idempotency-Key": "once"}, max_tokens=8)
            for gateway in gateways
        ]
        leaving = pool.submit(leaver.go_on, gateways)
        for seed in range(2, VERSIONS + 1):
            for somebody in both:
                of_tenant = versions[somebody.tenant.id]
                of_tenant.append(fleet.publish(somebody, of_tenant[-1], seed))
                firsts[somebody.tenant.id].append(ask(gateways[seed % 2], somebody, max_tokens=32))
        assert leaver.served.wait(120)
        revoke_key(tenant_id=acme.tenant.id, key_id=leaver.key.id, actor="test")
        refused = [ask(gateway, leaver.somebody).status for gateway in gateways]
        leaving.result()
        swapped.set()
        done = [made.result() for made in lanes]
        talked = [(somebody, talk.result()) for somebody, talk in talks]
        of_limited = Counter(one.result().status for one in few)
        repeated = [one.result() for one in same]

    asked = {who.tenant.id: [*done[number], *done[number + 2]] for number, who in enumerate(both)}
    # every reply came whole, as what was asked for
    chats = [one for made in done for one in made]
    everything = [one for _, one in chats] + [one for _, talk in talked for one in talk] + repeated
    assert Counter((one.status, one.finished, one.failed) for one in everything) == {
        (200, True, False): len(everything)
    }
    assert {(one.calls, one.reason) for name, one in chats if name.endswith("call")} == {(1, "tool_calls")}
    assert {is_paint(one.text) for name, one in chats if name == "form"} == {True}
    # a key that is revoked is refused by both from the next call on, and had been served until then
    assert refused == [401, 401]
    assert [one.status for one in leaver.answers] == [200] * (len(leaver.answers) - 1) + [401]
    # limits hold over both, and what they refuse leaves nothing behind
    assert of_limited == {200: 1, 429: 5}
    assert [turn.state for turn in limited.turns()] == ["complete"]
    # the same request at both at once is one turn
    assert repeated[0] == repeated[1]
    again = ask(gateways[1], acme, messages=said("Retried."), max_tokens=8)
    retry = {"X-Stainless-Retry-Count": "1"}
    assert ask(gateways[0], acme, messages=said("Retried."), max_tokens=8, headers=retry) == again
    # each is one turn of the ledger, none is pending, none without its tokens
    engines = set()
    for somebody in both:
        told = [one for _, one in asked[somebody.tenant.id]]
        told += [one for who, talk in talked for one in talk if who is somebody]
        # the first to ask after a version went live is answered by it
        assert [one.version for one in firsts[somebody.tenant.id]] == list(range(1, VERSIONS + 1))
        told += firsts[somebody.tenant.id]
        if somebody is acme:
            told += [repeated[0], again, *leaver.answers[:-1]]
        turns = by_id(somebody)
        assert set(turns) == {one.turn for one in told}
        assert len(turns) == len(told)
        numbers = {version.pk: version.number for version in versions[somebody.tenant.id]}
        for one in told:
            turn = turns[one.turn]
            assert (turn.state, turn.error, numbers[turn.version_id]) == ("complete", "", one.version)
            assert len(turn.output_ids) == len(turn.output_logprobs) == turn.usage["completion_tokens"] > 0
        engines |= {turn.engine_id for turn in turns.values()}
        wrote = [turns[one.turn] for one in firsts[somebody.tenant.id]]
        named_versions_answered(fleet, versions[somebody.tenant.id], wrote)
    assert engines == set(EngineRow.objects.values_list("id", flat=True))
    sessions_stay_apart(talked)
    an_engine_dies(fleet, engine_process, gateways, acme, globex)


def sessions_stay_apart(talked: list[tuple[Somebody, list[Answer]]]) -> None:
    """Both tenants gave their sessions the same names:
    each has its own, with its own turns in their order."""
    for somebody, talk in talked:
        (session,) = {one.session for one in talk}
        with tenant_scope(somebody.tenant.id):
            (row,) = Session.objects.filter(turns__id__in=[one.turn for one in talk]).distinct()
        held = [turn for turn in somebody.turns() if turn.session_id == row.pk]
        assert [str(turn.id) for turn in held] == [one.turn for one in talk]
        assert [turn.parent_id for turn in held] == [None, held[0].id, held[1].id]
        for before, after in itertools.pairwise(held):
            known = [*before.prompt_ids, *before.output_ids]
            assert (after.prompt_source, after.prompt_ids[: len(known)]) == ("extended", known)
        assert session.startswith("session ")


def named_versions_answered(fleet: Fleet, versions: list[AdapterVersion], turns: list[Any]) -> None:
    """What the ledger says that a version wrote has the log-probabilities that this version gives it."""

    async def scores(turn: Any) -> dict[Any, float]:
        ids, start = [*turn.prompt_ids, *turn.output_ids], len(turn.prompt_ids) - 1
        off = {}
        async with client_of(fleet.engines[1].url) as client:
            for version in versions:
                scored = (await client.score(ids, version.served_name))[start:]
                off[version.pk] = max(abs(a - b) for a, b in zip(scored, turn.output_logprobs, strict=True))
        return off

    for turn in turns:
        off = asyncio.run(scores(turn))
        assert off[turn.version_id] < 0.001
        assert min(value for pk, value in off.items() if pk != turn.version_id) > 0.001


def an_engine_dies(
    fleet: Fleet,
    engine_process: Engines,
    gateways: list[GatewayProcess],
    *people: Somebody,
) -> None:
    """One engine is killed under streams that have begun, under whole replies,
    and before requests know of it."""
    known = {name for somebody in people for name in by_id(somebody)}
    url_of = dict(EngineRow.objects.values_list("id", "url"))

    def new() -> dict[str, Any]:
        turns = {name: turn for somebody in people for name, turn in by_id(somebody).items()}
        return {name: turn for name, turn in turns.items() if name not in known}

    with ExitStack() as stack, ThreadPoolExecutor(16) as pool:
        client = stack.enter_context(httpx.Client(trust_env=False, timeout=240))
        body = {"model": "default", "temperature": 1, "messages": said(), "stream": True, **LONG}
        begun = []
        for gateway, somebody in itertools.product(gateways, people):
            url = f"{gateway.url}/v1/chat/completions"
            response = stack.enter_context(client.stream("POST", url, json=body, headers=somebody.headers))
            assert response.status_code == 200
            lines = response.iter_lines()
            # to the first text: before it another engine could take over
            begun.append((response, lines, next(line for line in lines if '"content":"\\"' in line)))
        at = {name: url_of[turn.engine_id] for name, turn in new().items()}
        killed, left = fleet.engines
        assert Counter(at.values()) == {killed.url: 2, left.url: 2}
        whole = [pool.submit(ask, gateways[i % 2], people[0]) for i in range(4)]
        engine_process.kill(killed)
        after = [
            pool.submit(ask, gateways[i % 2], people[i // 2 % 2], max_tokens=16, stream=i > 3)
            for i in range(8)
        ]
        ends = [
            read(
                httpx.Response(200, headers=response.headers, text="\n".join([first, *lines, ""])),
                stream=True,
            )
            for response, lines, first in begun
        ]
        others = [one.result() for one in [*whole, *after]]

    # what had begun there ends in an error and is finished by nobody else; all others are answered
    for one in ends:
        died = at[one.turn] == killed.url
        assert (one.finished, one.failed) == (not died, died)
    assert {(one.status, one.finished, one.failed) for one in others} == {(200, True, False)}
    turns = new()
    assert set(turns) == {*at, *(one.turn for one in others)}
    for name, turn in turns.items():
        assert turn.state == ("failed" if at.get(name) == killed.url else "complete")
        assert len(turn.output_ids) == len(turn.output_logprobs) > 0
    assert {url_of[turns[one.turn].engine_id] for one in others} == {left.url}
    # a policy that prefers it, and finds nobody there, has it known as lost
    end = time.monotonic() + 30
    while (states := dict(EngineRow.objects.values_list("url", "state")))[killed.url] == EngineState.READY:
        assert ask(gateways[0], people[0], max_tokens=4).finished
        assert time.monotonic() < end
    assert states == {killed.url: EngineState.LOST, left.url: EngineState.READY}
    connection.close()
