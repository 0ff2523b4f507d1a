"""What may be done beside people's requests: nothing while they ask, little soon after, more in silence."""

import datetime as dt

from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from apps.conversations.models import Turn, TurnKind, TurnState
from apps.conversations.quiet import AFTER_A_WHILE_S, IN_SILENCE, IN_TALK, room_beside_people
from kernel.tenancy import tenant_scope
from tests.apps.learning.ledger import add_turn
from tests.tenants import Somebody, add_somebody


def test_the_longer_nobody_asked_the_more_room_there_is(db: None, settings: Settings) -> None:
    settings.SHADOW_QUIET_S = 2.0
    assert room_beside_people() == IN_SILENCE
    somebody = add_somebody()
    turn = add_turn(somebody)

    assert room_beside_people() == 0
    asked(somebody, turn, ago_s=3.0)
    assert room_beside_people() == IN_TALK
    asked(somebody, turn, ago_s=AFTER_A_WHILE_S + 1)
    assert room_beside_people() == IN_SILENCE
    with tenant_scope(somebody.tenant.id):
        Turn.objects.update(state=TurnState.PENDING, completed_at=None)
    assert room_beside_people() == 0


def test_it_takes_one_query_whoever_asks(
    db: None, settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """It is asked ten times a second by whoever writes shadow replies."""
    settings.SHADOW_QUIET_S = 2.0
    somebody = add_somebody()
    turn = add_turn(somebody)
    for ago_s, room in ((0.0, 0), (3.0, IN_TALK), (AFTER_A_WHILE_S + 1, IN_SILENCE)):
        asked(somebody, turn, ago_s=ago_s)
        with django_assert_num_queries(1):
            assert room_beside_people() == room


def test_what_shadow_rollouts_write_keeps_nobody_from_writing_more(db: None) -> None:
    somebody = add_somebody()
    add_turn(somebody, kind=TurnKind.SHADOW, state=TurnState.PENDING, completed_at=None, reply=None)
    assert room_beside_people() == IN_SILENCE


def asked(somebody: Somebody, turn: Turn, *, ago_s: float) -> None:
    then = timezone.now() - dt.timedelta(seconds=ago_s)
    with tenant_scope(somebody.tenant.id):
        Turn.objects.filter(pk=turn.pk).update(created_at=then, completed_at=then)
