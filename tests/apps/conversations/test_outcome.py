"""A turn ends once; what the engine wrote is kept as it came."""

import pytest

from apps.conversations.canonical import extend_chain
from apps.conversations.services import abort_turn, complete_turn, fail_turn
from kernel.errors import Conflict
from tests.apps.conversations.talk import admit, turn, user, written
from tests.chat_model import END, ids_of
from tests.tenants import Somebody

pytestmark = pytest.mark.django_db


def test_a_complete_turn_holds_what_the_engine_said(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"), idempotency_key="k1")
    generation = written("Hi", first_token_ms=12.5, latency_ms=40.0, spans=[(0, "p-v1")])

    complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=generation)

    stored = turn(somebody, admitted)
    assert stored.state == "complete"
    assert stored.reply == {"role": "assistant", "content": "Hi"}
    assert stored.reply_hash == extend_chain(stored.request_hash, {"role": "assistant", "content": "Hi"})
    assert stored.output_ids == [*ids_of("Hi"), END]
    assert stored.output_logprobs == [-0.5, -0.5, -0.5]
    assert stored.spans == [[0, "p-v1"]]
    assert (stored.finish_reason, stored.usage) == ("stop", {"completion_tokens": 3})
    assert (stored.first_token_ms, stored.latency_ms) == (12.5, 40.0)
    assert stored.completed_at is not None
    assert stored.idempotency_key == "k1"


def test_misaligned_logprobs_are_not_stored_and_the_reason_is(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))

    complete_turn(
        tenant_id=somebody.tenant.id,
        turn_id=admitted.turn_id,
        generation=written("Hi", misaligned="2 log-probabilities for 3 tokens"),
    )

    stored = turn(somebody, admitted)
    assert stored.output_ids == [*ids_of("Hi"), END]
    assert stored.output_logprobs == []
    assert stored.error == "misaligned: 2 log-probabilities for 3 tokens"


def test_a_reply_with_characters_that_cannot_be_stored_is_cleaned(somebody: Somebody) -> None:
    admitted = admit(somebody, user("hi"))
    generation = written("ab")
    generation.text = "a\x00b"

    complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=generation)

    assert turn(somebody, admitted).reply == {"role": "assistant", "content": "a\ufffdb"}


@pytest.mark.parametrize("ending", ["aborted", "failed"])
def test_a_part_of_a_reply_is_kept_and_marked(somebody: Somebody, ending: str) -> None:
    admitted = admit(somebody, user("hi"), idempotency_key="k1")
    part = written("He", finish_reason="")
    if ending == "aborted":
        abort_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=part)
    else:
        fail_turn(
            tenant_id=somebody.tenant.id,
            turn_id=admitted.turn_id,
            error="engine_broken: gone\x00",
            generation=part,
        )

    stored = turn(somebody, admitted)
    assert stored.state == ending
    assert stored.reply == {"role": "assistant", "content": "He"}
    assert stored.output_ids == part.output_ids
    assert stored.idempotency_key is None
    assert stored.error == ("engine_broken: gone\ufffd" if ending == "failed" else "")
    with pytest.raises(Conflict):
        complete_turn(tenant_id=somebody.tenant.id, turn_id=admitted.turn_id, generation=written("Hello"))
    assert turn(somebody, admitted).state == ending
