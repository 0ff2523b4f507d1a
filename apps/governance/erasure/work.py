"""Do a deletion, some turns at a time.

Each step is one transaction that counts what it took: whether it dies or comes twice at any line, the sum is
the same.
"""

import enum
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.accounts.models import EndUser
from apps.conversations.models import Session, Turn, TurnState
from apps.governance.erasure.aged import is_called_off
from apps.governance.erasure.requests import announce, forget_grounds
from apps.governance.erasure.subjects import Meant, consumed_by_version
from apps.governance.export.jobs import end_all
from apps.governance.models import Erasure, ErasureState, LearnedFrom, Subject
from apps.judging import spend
from apps.judging.models import Judgement, OptOut
from apps.learning import runs
from apps.learning.models import Sample, SampleState
from apps.memory.models import Evidence, Preference
from apps.memory.services import forget_groundless, keep_pinned, words_go
from kernel import audit
from kernel.errors import Conflict
from kernel.locks import locked

TURNS_AT_ONCE = 100
SESSIONS_AT_ONCE = 20
ROWS_AT_ONCE = 500
STEPS_A_MESSAGE = 200
"""Then another message goes on, so that one large deletion does not hold a worker for itself."""
WAIT_S = 5.0  # for replies that are being written
ACTOR = "system:erasure"


class Step(enum.Enum):
    """What became of a step."""

    MORE = enum.auto()
    WAITS = enum.auto()
    DONE = enum.auto()


def erase(*, erasure_id: uuid.UUID) -> Step:
    """Go on with a deletion until it is done, has to wait, or had its share; the rest is another message.

    Safe to run twice at once. Must run in the tenant's scope and outside a transaction.
    """
    step = Step.MORE
    for _ in range(STEPS_A_MESSAGE):
        step = _step(erasure_id)
        if step != Step.MORE:
            return step
    with transaction.atomic():
        announce(Erasure.objects.get(pk=erasure_id))
    return step


def ask_again(*, older_than_s: float, limit: int = 50) -> int:
    """Announce the deletions in scope that nobody goes on with; return how many."""
    due = Erasure.objects.filter(
        state=ErasureState.OPEN, moved_at__lt=timezone.now() - timedelta(seconds=older_than_s)
    )
    with transaction.atomic():
        found = list(due.order_by("moved_at")[:limit])
        for erasure in found:
            announce(erasure)
    return len(found)


def _step(erasure_id: uuid.UUID) -> Step:
    """Delete some rows, or find out why that cannot be."""
    with transaction.atomic():
        # those who come twice take turns
        erasure = Erasure.objects.select_for_update().filter(pk=erasure_id).first()
        if erasure is None or erasure.state == ErasureState.DONE:
            return Step.DONE
        meant = Meant.of(erasure)
        if is_called_off(erasure):
            return _last(erasure, meant)
        if _forget_wishes(erasure, meant):
            return Step.MORE
        due = meant.sessions_until(erasure.created_at)
        if not due.exists():
            return Step.MORE if _forget_people(erasure, meant) else _last(erasure, meant)
        found = _some_sessions(due, meant)
        sessions, turns = _some_turns(found)
        if not sessions:
            if meant.subject != Subject.AGED:
                # since it was asked for, a judge may have said what prompts would be told meanwhile
                forget_grounds(Turn.objects.filter(session__in=due))
            _note(
                erasure,
                {},
                reason=f"waits for {'another deletion' if found else 'a reply that is being written'}",
            )
            announce(erasure, delay_s=WAIT_S)
            return Step.WAITS
        holding = _runs_that_hold(turns)
        if not holding:
            _delete(erasure, sessions, turns)
    for run_id in holding:
        _cancel(run_id)
    return Step.MORE


def _some_sessions(due: QuerySet[Session], meant: Meant) -> list[uuid.UUID]:
    """Return sessions to be gone on with, locked: no request is admitted to them meanwhile.

    None where all wait.
    """
    if meant.subject == Subject.SESSION and due.exclude(pk=meant.key).exists():
        due = due.exclude(pk=meant.key)  # goes last: the others are found by it
    pending = Turn.objects.filter(session=OuterRef("pk"), state=TurnState.PENDING)
    some = due.filter(~Exists(pending)).order_by(*meant.oldest_first()).values_list("pk", flat=True)
    found = _locked(due, list(some[:SESSIONS_AT_ONCE]))
    # a request may have been admitted before they were locked
    busy = Turn.objects.filter(session__in=found, state=TurnState.PENDING)
    return sorted(set(found) - set(busy.values_list("session_id", flat=True)))


def _locked(due: QuerySet[Session], some: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Lock sessions that nobody else holds; return those that are still due:
    one that went on is not aged any more."""
    rows = locked(due.filter(pk__in=some), skip_locked=True, to_delete=True)
    return list(rows.values_list("pk", flat=True))


def _some_turns(sessions: list[uuid.UUID]) -> tuple[list[uuid.UUID], list[uuid.UUID]]:
    """Lock the turns that go next; return them with the sessions that may be empty then:
    first what repeats a question of theirs.

    Neither where another deletion holds all of that: it may wait for one of these sessions in turn.
    """
    turns = list(
        Turn.objects.filter(session__in=sessions)
        .order_by("-session_id", "-created_at")  # children before parents, in the order of an index
        .values_list("pk", flat=True)[:TURNS_AT_ONCE]
    )
    repeating = Turn.objects.filter(repeats__in=turns).exclude(pk__in=turns)
    if found := dict(repeating.values_list("pk", "session_id")[:TURNS_AT_ONCE]):
        repeated = Session.objects.filter(pk__in=set(found.values()))
        theirs = locked(repeated, skip_locked=True, to_delete=True)
        sessions = list(theirs.values_list("pk", flat=True))
        turns = [turn for turn, session in found.items() if session in sessions]
    rows = locked(Turn.objects.filter(pk__in=turns), to_delete=True)
    return sessions, list(rows.values_list("pk", flat=True))


def _runs_that_hold(turns: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Lock the samples of turns; return the runs that learn from one of them right now."""
    samples = locked(Sample.objects.filter(turn_id__in=turns), to_delete=True)
    return sorted(
        {row.run_id for row in samples if row.state == SampleState.CLAIMED and row.run_id is not None}
    )


def _cancel(run_id: uuid.UUID) -> None:
    """End a run under way, which learns from what is to be gone; its other samples wait for the next one."""
    with suppress(Conflict):  # it ended meanwhile: what it consumed is told of
        runs.cancel_run(run_id=run_id, actor=ACTOR)


def _delete(erasure: Erasure, sessions: Sequence[uuid.UUID], turns: Sequence[uuid.UUID]) -> None:
    """Delete turns with all that hangs on them, and the sessions that are empty then."""
    rows = Turn.objects.filter(pk__in=turns)
    for version_id, count in consumed_by_version(rows).items():
        made, new = LearnedFrom.objects.get_or_create(
            erasure=erasure,
            version_id=version_id,
            defaults={"tenant_id": erasure.tenant_id, "samples": count},
        )
        if not new:
            LearnedFrom.objects.filter(pk=made.pk).update(samples=F("samples") + count)
    for judgement in locked(Judgement.objects.filter(turn__in=rows), to_delete=True):
        spend.release(judgement)  # whoever asks the judge finds it gone
    is_aged = erasure.subject == Subject.AGED
    words_go(rows)
    groundless = keep_pinned(turns) if is_aged else []
    _, gone = rows.only("pk").delete()
    wishes = {"preference": forget_groundless(among=groundless)} if groundless else {}
    left = Turn.objects.filter(session=OuterRef("pk"))
    emptied = Session.objects.filter(~Exists(left), pk__in=sessions)
    people = set(emptied.values_list("end_user_id", flat=True)) - {None} if is_aged else set()
    _, sessions_gone = emptied.delete()
    unheard = _forget_unheard(EndUser.objects.filter(pk__in=people)) if people else {}
    _note(erasure, _sum(_sum(gone, sessions_gone), _sum(wishes, unheard)))


def _forget_wishes(erasure: Erasure, meant: Meant) -> bool:
    """Delete some of the person's preferences, which prompts are told; whether there were any."""
    asked = meant.preferences().filter(created_at__lte=erasure.created_at)
    found = list(locked(asked, to_delete=True).values_list("pk", flat=True)[:ROWS_AT_ONCE])
    if not found:
        return False
    _, gone = Preference.objects.filter(pk__in=found).delete()
    _note(erasure, gone)
    return True


def _forget_people(erasure: Erasure, meant: Meant) -> bool:
    """Delete some end users who said nothing since; whether there were any."""
    if meant.subject not in (Subject.END_USER, Subject.EVERYTHING):
        return False
    people = EndUser.objects.filter(created_at__lte=erasure.created_at)
    if meant.subject == Subject.END_USER:
        people = people.filter(pk=meant.key)
    gone = _forget_unheard(people)
    _note(erasure, gone)
    return bool(gone)


def _forget_unheard(people: QuerySet[EndUser]) -> Mapping[str, int]:
    """Delete some end users of whom nothing is left but the name; return what is gone.

    One who opted out is kept, as a name: without it, whatever that person says next would be learned from. A
    wish that rests on nothing any more is told to nobody, and goes along.
    """
    grounds = Evidence.objects.filter(preference=OuterRef("pk"))
    told = Preference.objects.filter(~Q(own_words="") | Exists(grounds), end_user=OuterRef("pk"))
    idle = people.filter(
        ~Exists(OptOut.objects.filter(end_user=OuterRef("pk"), ended_at=None)),
        ~Exists(Session.objects.filter(end_user=OuterRef("pk"))),
        ~Exists(told),
    )
    # locked: a request that names one of them waits, and then makes that one anew
    held = list(locked(idle, to_delete=True).values_list("pk", flat=True)[:ROWS_AT_ONCE])
    # whoever was waited for may have said, wished or refused something for one of them
    _, gone = idle.filter(pk__in=held).delete()
    return gone


def _last(erasure: Erasure, meant: Meant) -> Step:
    """Delete what is left, end archives that hold what is gone, and say that it is done.

    What is only aged may stay in an archive, which goes by itself within days.
    """
    is_aged = meant.subject == Subject.AGED
    _, gone = meant.lessons().filter(created_at__lte=erasure.created_at).delete()
    ended = 0 if is_aged else end_all(erasure.tenant_id, "it held what was deleted since")
    _note(erasure, _sum(gone, {"export": ended} if ended else {}))
    erasure.state, erasure.finished_at = ErasureState.DONE, timezone.now()
    erasure.save(update_fields=["state", "finished_at"])
    learned = erasure.learned.select_related("version").order_by("version__number")
    audit.record(
        actor=ACTOR,
        action="data.aged" if is_aged else "data.deleted",
        target=f"erasure:{erasure.pk}",
        tenant_id=erasure.tenant_id,
        detail={
            **({"policy": str(meant.key), "older_than_days": erasure.older_than_days} if is_aged else {}),
            "deleted": erasure.deleted,
            "versions_that_had_learned": {one.version.served_name: one.samples for one in learned},
        },
    )
    return Step.DONE


def _note(erasure: Erasure, gone: Mapping[str, int], *, reason: str = "") -> None:
    """Add to a deletion (locked by the caller) what is gone."""
    named = {label.rpartition(".")[2].lower(): count for label, count in gone.items() if count}
    erasure.deleted = dict(_sum(erasure.deleted, named))
    erasure.reason, erasure.moved_at = reason, timezone.now()
    erasure.save(update_fields=["deleted", "reason", "moved_at"])


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}
