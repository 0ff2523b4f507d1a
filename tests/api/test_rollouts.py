"""Rollouts begin while training keeps up with them; everybody else is served whatever training does."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from django.utils import timezone

from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn, TurnKind
from apps.keys.models import KeyScope
from apps.keys.services import create_key
from apps.learning.models import RolloutGate, Sample, SampleState
from apps.learning.rules.admission import Intake, room
from apps.learning.waiting import under_way
from kernel.tenancy import tenant_scope
from tests.api.checks import refused
from tests.api.conftest import Chat
from tests.api.gateway_process import GatewayProcess
from tests.fake_engine import FakeEngine
from tests.tenants import Somebody

Headers = dict[str, str]


@pytest.fixture
def environment(somebody: Somebody) -> Headers:
    """The header of a key for rollouts, of a policy with room for three."""
    with tenant_scope(somebody.tenant.id):
        somebody.policy.config = {"batch_size": 3, "max_staleness": 0}
        somebody.policy.save()
    _, text = create_key(
        tenant=somebody.tenant, user=somebody.user, name="env", scopes=[KeyScope.CHAT, KeyScope.ROLLOUT]
    )
    return {"Authorization": f"Bearer {text}"}


def intake(somebody: Somebody) -> Intake:
    """Count by rows, apart from what the gate counts."""
    with tenant_scope(somebody.tenant.id):
        policy = Policy.objects.select_related("live").get(id=somebody.policy.id)
        waiting = Sample.objects.filter(policy=policy, state__in=(SampleState.READY, SampleState.CLAIMED))
        return Intake(
            version=policy.live.depth if policy.live else 0,
            waiting=waiting.count(),
            running=under_way(policy.id).count(),
        )


def left(somebody: Somebody) -> int:
    """Return how many more may begin by the rule that the schedule's simulation goes by."""
    return room(intake(somebody), staleness=0, batch=3)


def counted(somebody: Somebody) -> tuple[int, int]:
    with tenant_scope(somebody.tenant.id):
        begun = Turn.objects.filter(policy=somebody.policy, kind=TurnKind.ROLLOUT, side=False, parent=None)
        gate = RolloutGate.objects.get(policy=somebody.policy)
        assert gate.admitted == begun.count()
        return gate.admitted, gate.refused


def test_rollouts_are_refused_before_generation_while_training_is_behind(
    chat: Chat, somebody: Somebody, engine: FakeEngine, environment: Headers
) -> None:
    for more in (2, 1, 0):
        assert chat(f"task {more}", headers=environment).status_code == 200
        assert left(somebody) == more
    answer = chat("one too many", headers=environment)
    error = refused(answer, 429, "rollout_capacity", None)
    assert error["message"].endswith(" is enough for now. Ask again in 5 seconds.")
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert answer.headers["retry-after"] == "5"
    assert len(engine.requests) == len(somebody.turns()) == 3
    assert {turn.kind for turn in somebody.turns()} == {TurnKind.ROLLOUT}
    assert counted(somebody) == (3, 1)

    # once two are over and one of them has taught nothing, there is room for as many as left the count
    with tenant_scope(somebody.tenant.id):
        first, second, _ = Turn.objects.order_by("created_at")
        Session.objects.filter(id=first.session_id).update(idle_at=timezone.now())
        for turn, state, reason in (
            (first, SampleState.INELIGIBLE, "no signal"),
            (second, SampleState.READY, ""),
        ):
            Sample.objects.create(
                policy=somebody.policy, turn=turn, source="rollout", state=state, reason=reason
            )
    assert left(somebody) == 1
    assert chat("now", headers=environment).status_code == 200
    refused(chat("and one more", headers=environment), 429, "rollout_capacity", None)
    assert counted(somebody) == (4, 2)


def test_who_is_always_served(chat: Chat, somebody: Somebody, environment: Headers) -> None:
    begun = [{"role": "user", "content": "task"}]
    reply = chat(begun, headers=environment).json()["choices"][0]["message"]
    for text in ("b", "c"):
        chat(text, headers=environment)
    refused(chat("d", headers=environment), 429, "rollout_capacity", None)

    assert chat("a live user").status_code == 200
    # a rollout that has begun may end, or nothing that waits for it would ever be ready
    go_on = [*begun, {"role": "assistant", "content": reply["content"]}, {"role": "user", "content": "go on"}]
    assert chat(go_on, headers=environment).status_code == 200
    assert chat("side", headers={**environment, "X-Turn-Type": "side"}).status_code == 200
    kinds = Counter((turn.kind, turn.side) for turn in somebody.turns())
    assert kinds == {("rollout", False): 4, ("rollout", True): 1, ("live", False): 1}
    assert counted(somebody) == (3, 1)


def test_evaluation_and_side_turns_take_no_room(chat: Chat, somebody: Somebody, environment: Headers) -> None:
    _, text = create_key(
        tenant=somebody.tenant, user=somebody.user, name="e", scopes=[KeyScope.CHAT, KeyScope.EVALUATE]
    )
    assert chat("side", headers={"X-Turn-Type": "side"}).status_code == 200
    asked = chat("held out", model="default@0", headers={"Authorization": f"Bearer {text}"})
    assert asked.status_code == 200
    assert left(somebody) == 3
    assert chat("task", headers=environment).status_code == 200
    assert left(somebody) == 2


def test_two_gateways_admit_no_more_than_one_and_a_restart_changes_no_counter(
    gateway: GatewayProcess,
    start_gateway: Callable[..., GatewayProcess],
    somebody: Somebody,
    engine: FakeEngine,
    environment: Headers,
) -> None:
    other = start_gateway()

    def begin(number: int) -> int:
        url = (gateway, other)[number % 2].url
        body = {"model": "default", "messages": [{"role": "user", "content": f"task {number}"}]}
        return httpx.post(
            f"{url}/v1/chat/completions", json=body, headers=environment, trust_env=False, timeout=60
        ).status_code

    with ThreadPoolExecutor(16) as pool:
        answers = Counter(pool.map(begin, range(16)))
    assert answers == {200: 3, 429: 13}
    assert len(engine.requests) == 3
    assert counted(somebody) == (3, 13)
    before = intake(somebody)
    other.kill()
    other.start()
    assert intake(somebody) == before
    assert begin(1) == 429
    assert counted(somebody) == (3, 14)
