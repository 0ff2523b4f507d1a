"""What a deletion is about: which sessions, and which rows beside them."""

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce

from apps.accounts.models import EndUser, Membership
from apps.adapters.models import Policy
from apps.conversations.models import Session, Turn, TurnKind
from apps.governance.models import Erasure, Subject
from apps.learning.models import Sample, SampleState
from apps.memory.models import Lesson, Preference
from kernel.errors import InvalidInput, NotFound

M = TypeVar("M", Preference, Lesson)
ByVersion = dict[uuid.UUID, int]
"""Version -> samples that the run which made it had consumed."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A session, an end user, a member, what is aged of a policy,
    or (id None) everything of the tenant in scope."""

    subject: Subject
    id: uuid.UUID | None = None
    until: dt.datetime | None = None
    """Of what is aged: the sessions that go had their last turn before then."""

    @classmethod
    def of(cls, erasure: Erasure) -> "Meant":
        """Return what a deletion is about."""
        days = erasure.older_than_days
        until = None if days is None else erasure.created_at - dt.timedelta(days=days)
        return cls(Subject(erasure.subject), erasure.subject_id, until)

    @classmethod
    def aged(cls, policy_id: uuid.UUID, *, days: int, at: dt.datetime) -> "Meant":
        """Return the sessions of a policy in which, at a moment, nothing was said for longer than `days`."""
        return cls(Subject.AGED, policy_id, at - dt.timedelta(days=days))

    def check(self) -> None:
        """Raise NotFound where the tenant in scope has no such thing,
        InvalidInput where an id is missing or too much."""
        if (self.id is None) != (self.subject == Subject.EVERYTHING):
            raise InvalidInput("Name what is to be deleted.", field="id")
        if not self._is_there():
            raise NotFound(f"There is no such {self.subject.label.lower()}.", field="id")

    @property
    def key(self) -> uuid.UUID:
        """The id, of what has one."""
        assert self.id is not None  # noqa: S101
        return self.id

    def _is_there(self) -> bool:
        if self.subject == Subject.EVERYTHING:
            return True
        if self.subject == Subject.SESSION:
            return Session.objects.filter(pk=self.key).exists()
        if self.subject == Subject.END_USER:
            return EndUser.objects.filter(pk=self.key).exists()
        if self.subject == Subject.AGED:
            return Policy.objects.filter(pk=self.key).exists()
        # somebody who left the tenant may have said things in it
        return Membership.objects.filter(user_id=self.key).exists() or self.sessions().exists()

    def sessions(self) -> QuerySet[Session]:
        """Return the sessions that go.

        With a session go the shadow sessions of its person and policy: what the weights were taught in quiet
        minutes repeats that person's questions. A member's are those in which no end user was named: the
        others are the end users'.
        """
        rows = Session.objects.all()
        if self.subject == Subject.EVERYTHING:
            return rows
        if self.subject == Subject.END_USER:
            return rows.filter(end_user_id=self.key)
        if self.subject == Subject.MEMBER:
            return rows.filter(user_id=self.key, end_user__isnull=True)
        if self.subject == Subject.AGED:
            # as the index has it; the last turn's moment is written by every request,
            # so what goes on is young again
            said_at = Coalesce("last_turn_at", "created_at")
            return rows.alias(said_at=said_at).filter(policy_id=self.key, said_at__lt=self.until)
        return rows.filter(Q(pk=self.key) | self._shadows())

    def oldest_first(self) -> tuple[str, ...]:
        """Return the order in which its sessions go, one that an index has."""
        return ("said_at",) if self.subject == Subject.AGED else ("created_at", "id")

    def sessions_until(self, asked_at: dt.datetime) -> QuerySet[Session]:
        """Return the sessions that were there when the deletion was asked for.

        Of what repeats them (shadow sessions) the later ones too: their questions are older than they are.
        """
        if self.subject == Subject.AGED:
            return self.sessions()
        return self.sessions().filter(Q(created_at__lte=asked_at) | Q(kind=TurnKind.SHADOW))

    def _shadows(self) -> Q:
        session = Session.objects.filter(pk=self.key).values("user_id", "end_user_id", "policy_id").first()
        # once the session is gone, so are they: it goes last
        return Q(pk__in=[]) if session is None else Q(kind=TurnKind.SHADOW, **session)

    def preferences(self) -> QuerySet[Preference]:
        """Return the preferences that go with the person;
        a session takes only what it said along (its evidence)."""
        return self._theirs(Preference.objects.all())

    def lessons(self) -> QuerySet[Lesson]:
        """Return what the weights were being taught of the person's wishes."""
        return self._theirs(Lesson.objects.all())

    def _theirs(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Return those of rows of people that are of the one who is meant; a session is nobody."""
        if self.subject == Subject.EVERYTHING:
            return rows
        if self.subject == Subject.END_USER:
            return rows.filter(end_user_id=self.key)
        if self.subject == Subject.MEMBER:
            return rows.filter(user_id=self.key, end_user__isnull=True)
        return rows.none()

    def turns(self) -> QuerySet[Turn]:
        """Return the turns that go."""
        if self.subject == Subject.EVERYTHING:
            return Turn.objects.all()
        return Turn.objects.filter(session__in=self.sessions())


def consumed_by_version(turns: QuerySet[Turn]) -> ByVersion:
    """Return which versions learned from samples of these turns, and from how many."""
    rows = (
        Sample.objects.filter(turn__in=turns, state=SampleState.CONSUMED, run__version__isnull=False)
        .order_by()
        .values_list("run__version_id")
        .annotate(n=Count("pk"))
    )
    return {version_id: count for version_id, count in rows if version_id is not None}
