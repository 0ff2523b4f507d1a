"""Save, change and delete views.

Everybody keeps their own; the shared ones are for who manages the tenant.
"""

import unicodedata
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Value
from django.db.models.functions import Lower

from apps.accounts.models import EndUser, Tenant
from apps.adapters.models import Policy
from apps.dashboard.models import LONGEST_NAME, MOST, SavedView
from apps.dashboard.saved.filters import NAMES, SessionFilters
from apps.dashboard.saved.selectors import views_for
from kernel import audit
from kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from kernel.locks import locked


@dataclass(frozen=True, slots=True)
class Keeper:
    """Who saves or changes a view."""

    tenant_id: uuid.UUID
    user_id: uuid.UUID
    actor: str
    """How audit rows name them."""
    manages: bool
    """Whether shared views are theirs to make and change."""


def save_view(*, keeper: Keeper, name: str, filters: Mapping[str, Any], shared: bool = False) -> SavedView:
    """Save filters under a name, for oneself or for the tenant; a shared one is audited.

    Raises InvalidInput naming the field, Conflict where the name is taken or there are `MOST` already, and
    Forbidden where somebody shares who does not manage the tenant.
    """
    if shared:
        _must_manage(keeper)
    said = _name(name)
    with transaction.atomic():
        _lock(keeper.tenant_id)
        stored, end_user = _read(keeper, filters)
        others = _beside(keeper.user_id, shared=shared)
        view = SavedView.objects.create(
            tenant_id=keeper.tenant_id,
            user_id=keeper.user_id,
            name=_free(said, others),
            shared=shared,
            place=_place(others, shared=shared),
            filters=stored,
            end_user=end_user,
        )
        if shared:
            _record(keeper, view, "view.share")
    return view


def change_view(
    *,
    keeper: Keeper,
    view_id: uuid.UUID,
    name: str | None = None,
    filters: Mapping[str, Any] | None = None,
    shared: bool | None = None,
) -> SavedView:
    """Change a view's name or filters, share it, or take it back; None leaves as it is.

    Audited where it is shared.

    Only who made a view takes it back. Raises as `save_view` does, and NotFound for a view that is not there
    for them.
    """
    said = None if name is None else _name(name)
    with transaction.atomic():
        _lock(keeper.tenant_id)
        read = None if filters is None else _read(keeper, filters)
        view = _mine(keeper, view_id)
        was_shared = view.shared
        view.shared = was_shared if shared is None else shared
        others = _beside(view.user_id, shared=view.shared).exclude(pk=view.pk)
        if view.shared != was_shared:
            _must_manage(keeper)
            if was_shared and view.user_id != keeper.user_id:
                raise Forbidden("Only who made a view can take it back; you can delete it.")
            view.place = _place(others, shared=view.shared)
        view.name = _free(view.name if said is None else said, others)
        if read is not None:
            view.filters, view.end_user = read
        view.save(update_fields=["name", "shared", "place", "filters", "end_user"])
        if view.shared or was_shared:
            _record(keeper, view, "view.change" if view.shared == was_shared else _sharing(view))
    return view


def delete_view(*, keeper: Keeper, view_id: uuid.UUID) -> None:
    """Delete a view; a shared one is gone for everybody, and audited. Raises NotFound or Forbidden."""
    with transaction.atomic():
        _lock(keeper.tenant_id)
        view = _mine(keeper, view_id)
        if view.shared:
            _record(keeper, view, "view.delete")
        view.delete()


def _must_manage(keeper: Keeper) -> None:
    if not keeper.manages:
        raise Forbidden("Shared views are for owners and admins to make and change.")


def _mine(keeper: Keeper, view_id: uuid.UUID) -> SavedView:
    """Return a view that somebody sees and may change, locked: it may go with its end user at this moment."""
    view = locked(views_for(keeper.user_id).filter(pk=view_id)).first()
    if view is None:
        raise NotFound("There is no such view.")
    if view.shared:
        _must_manage(keeper)
    return view


def _lock(tenant_id: uuid.UUID) -> None:
    """Let one change of a tenant's views follow another:
    which names and places are free is read before it is written."""
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)


def _beside(user_id: uuid.UUID, *, shared: bool) -> QuerySet[SavedView]:
    """Return the views beside which one stands: the tenant's, or a member's own."""
    rows = SavedView.objects.filter(shared=shared)
    return rows if shared else rows.filter(user_id=user_id)


def _place(others: QuerySet[SavedView], *, shared: bool) -> int:
    taken = set(others.values_list("place", flat=True))
    free = next((place for place in range(1, MOST + 1) if place not in taken), None)
    if free is None:
        whose = f"{MOST} views are shared" if shared else f"You have {MOST} views"
        raise Conflict(
            f"{whose} already, which is the most: delete one first.", field="name", code="too_many"
        )
    return free


def _free(name: str, others: QuerySet[SavedView]) -> str:
    # as the constraint compares: what is one letter in capitals may be two in small ones
    if others.alias(folded=Lower("name")).filter(folded=Lower(Value(name))).exists():
        raise Conflict(f"There is a view called {name!r} already.", field="name", code="name_taken")
    return name


def _name(name: str) -> str:
    said = " ".join(name.split())
    if not said:
        raise InvalidInput("Give it a name.", field="name")
    if len(said) > LONGEST_NAME:
        raise InvalidInput(f"A name has at most {LONGEST_NAME} characters.", field="name")
    if any(unicodedata.category(letter) == "Cc" for letter in said):
        raise InvalidInput("A name holds no control characters.", field="name")
    return said


def _read(keeper: Keeper, filters: Mapping[str, Any]) -> tuple[dict[str, str], EndUser | None]:
    """Return filters as they are stored; raise InvalidInput naming the one that means nothing.

    The end user is locked, as a deletion locks them before it takes their views: they are there until the
    commit.
    """
    unknown = sorted(set(filters) - set(NAMES))
    if unknown:
        raise InvalidInput(f"There is no filter {unknown[0]!r}.", field=f"filters.{unknown[0]}")
    form = SessionFilters(filters, list(Policy.objects.order_by("name")))
    if not form.is_valid():
        name, errors = next(iter(form.errors.items()))
        raise InvalidInput(str(errors[0]), field=f"filters.{name}")
    chosen = form.chosen()
    if not chosen:
        raise InvalidInput("Choose at least one filter.", field="filters")
    person, end_user = chosen.pop("person", ""), None
    if person:
        known = EndUser.objects.filter(external_id=person)
        if not keeper.manages:  # whose sessions one may not see, one does not learn of either
            known = known.filter(sessions__user_id=keeper.user_id)
        end_user = locked(known).first()
        if end_user is None:
            raise InvalidInput("No end user of that name has written yet.", field="filters.person")
    return chosen, end_user


def _sharing(view: SavedView) -> str:
    return "view.share" if view.shared else "view.unshare"


def _record(keeper: Keeper, view: SavedView, action: str) -> None:
    audit.record(
        actor=keeper.actor,
        action=action,
        target=f"view:{view.pk}",
        tenant_id=keeper.tenant_id,
        detail={"name": view.name, "filters": view.filters},
    )
