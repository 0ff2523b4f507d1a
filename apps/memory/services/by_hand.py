"""What people do to preferences themselves. Every change is audited; words never stand in the audit log."""

import uuid

from django.db import IntegrityError, transaction

from apps.accounts.models import EndUser
from apps.adapters.models import Policy
from apps.memory.lessons import end_resting_on
from apps.memory.models import KEPT, Preference, PreferenceState, Source
from apps.memory.people import Person
from apps.memory.sameness import Wish
from apps.memory.services.entries import FORGOTTEN, MOST, bury, create, make_room, revive
from apps.memory.services.wishes import Wishes
from apps.memory.text import checked
from kernel import audit
from kernel.errors import Conflict, NotFound

REWORDED = "what it taught was put in other words"


def add_preference(
    *,
    policy_id: uuid.UUID,
    user_id: uuid.UUID,
    end_user: str | None,
    text: str,
    pinned: bool = False,
    actor: str,
) -> Preference:
    """Keep what a person typed; typing what is there already makes those words count, and holds again.

    Raises InvalidInput or RefusedText, which name the field and the limit, and Conflict where the person has
    as many as are kept. Must run in the tenant's scope.
    """
    wish = Wish.of(checked(text))
    with transaction.atomic():
        policy = Policy.objects.filter(id=policy_id).first()
        if policy is None:
            raise NotFound("There is no such policy.", field="model", code="model_not_found")
        person = Person(policy.id, user_id, _end_user(policy.tenant_id, end_user))
        person.lock()
        wishes = Wishes(person)
        row = wishes.same_as(wish)
        if row is None:
            make_room(person)
            if Preference.objects.filter(**person.rows(), state__in=KEPT).count() >= MOST:
                raise Conflict(f"At most {MOST} preferences are kept for one person.", field="text")
            row = create(person, wish, source=Source.TYPED, typed=True, pinned=pinned)
        else:
            end_resting_on([row.pk], REWORDED)
            _say(row, wish, pinned=row.pinned or pinned)
        wishes.put(row, wish.words)
        wishes.settle(row, by_hand=True)
        _audit(row, "memory.add", actor, {"pinned": row.pinned})
    return row


def edit_preference(
    *, preference_id: uuid.UUID, user_id: uuid.UUID | None, text: str | None, pinned: bool | None, actor: str
) -> Preference:
    """Change the words of a preference, or pin and unpin it. What is edited or pinned is told again;
    what is pinned until it is unpinned, whatever the weights hold.

    `user_id`: whose it must be; None is anybody of the tenant in scope. Raises NotFound, InvalidInput,
    RefusedText or, where another one says the same, Conflict.
    """
    wish = Wish.of(checked(text)) if text is not None else None
    with transaction.atomic():
        person, row = _theirs(preference_id, user_id, words_go=REWORDED if wish is not None else "")
        wishes = Wishes(person)
        if wish is not None:
            other = wishes.same_as(wish)
            if other is not None and other.pk != row.pk:
                raise Conflict("Another preference says the same.", field="text", code="duplicate_preference")
            try:
                with transaction.atomic():
                    _say(row, wish, pinned=row.pinned)
            except IntegrityError as error:
                raise Conflict(
                    "Another preference says the same.", field="text", code="duplicate_preference"
                ) from error
            wishes.put(row, wish.words)
        if pinned is not None and pinned != row.pinned:
            row.pinned = pinned
            if pinned and row.state != PreferenceState.ACTIVE:
                revive(row, asked_again=True)
            else:
                row.save(update_fields=["pinned", "changed_at"])
        if wish is not None or pinned:
            wishes.settle(row, by_hand=True)
        _audit(row, "memory.edit", actor, {"words": wish is not None, "pinned": row.pinned})
    return row


def delete_preference(*, preference_id: uuid.UUID, user_id: uuid.UUID | None, actor: str) -> None:
    """Forget a preference: no prompt is told of it from the next request on, and its words are gone.

    `user_id` as in `edit_preference`. Raises NotFound; also for one that was deleted before.
    """
    with transaction.atomic():
        _, row = _theirs(preference_id, user_id, words_go=FORGOTTEN)
        bury(row, f"deleted by {actor}"[:200])
        _audit(row, "memory.delete", actor, {})


def _say(row: Preference, wish: Wish, *, pinned: bool) -> None:
    row.own_words, row.fingerprint, row.topics = wish.words, wish.compared.fingerprint, list(wish.topics)
    row.general, row.pinned, row.revision = True, pinned, row.revision + 1
    row.state, row.superseded_by, row.reason = PreferenceState.ACTIVE, None, ""
    row.held_by = row.held_since = None
    row.save()


def _theirs(
    preference_id: uuid.UUID, user_id: uuid.UUID | None, *, words_go: str
) -> tuple[Person, Preference]:
    """Return a kept preference, locked, with its person; `words_go`: why its lesson ends, "" where it goes on."""
    rows = Preference.objects.filter(id=preference_id, state__in=KEPT)
    row = (rows if user_id is None else rows.filter(user_id=user_id)).first()
    if row is None:
        raise NotFound("There is no such preference.", field="id")
    person = Person(row.policy_id, row.user_id, row.end_user_id)
    person.lock()
    if words_go:
        end_resting_on([row.pk], words_go)
    locked = rows.select_for_update(of=("self",)).filter(id=row.pk).first()
    if locked is None:
        raise NotFound("There is no such preference.", field="id")
    return person, locked


def _end_user(tenant_id: uuid.UUID, external_id: str | None) -> uuid.UUID | None:
    if external_id is None:
        return None
    # locked, as a deletion locks those whom it takes: they are there until the commit
    people = EndUser.objects.select_for_update(of=("self",), no_key=True)
    row, _ = people.get_or_create(tenant_id=tenant_id, external_id=external_id)
    return row.pk


def _audit(row: Preference, action: str, actor: str, detail: dict[str, object]) -> None:
    audit.record(
        actor=actor, action=action, target=f"preference:{row.pk}", tenant_id=row.tenant_id, detail=detail
    )
