"""Which two an address names: `?version=<id>&version=<id>`, from check boxes as from two selects."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

M = TypeVar("M", bound=Model)
OFFERED = 200
"""The newest of a policy that the selects offer."""


@dataclass(frozen=True, slots=True)
class Choice(Generic[M]):
    """What was chosen, oldest first, and what the selects offer."""

    rows: Sequence[M]
    words: str
    """Why there is nothing to compare; "" where two may be."""
    offered: Sequence[M]

    @property
    def two(self) -> tuple[M, M] | None:
        """The older and the newer one, where two may be compared."""
        return None if self.words else (self.rows[0], self.rows[1])

    @property
    def ids(self) -> list[str]:
        """Of what was chosen: what the first select shows, then the second."""
        return [str(row.pk) for row in self.rows]


def chosen_two(request: HttpRequest, name: str, rows: QuerySet[M]) -> Choice[M]:
    """Return the two of `rows` that the address names; they have a `policy_id`. Two queries.

    Raises Http404 for what is no id, or not among them.
    """
    given = [value for value in request.GET.getlist(name) if value]
    try:
        ids = [uuid.UUID(value) for value in given[:3]]
    except ValueError as error:
        raise Http404 from error
    found = list(rows.filter(pk__in=ids).order_by("created_at", "id"))
    if len(found) < len(set(ids)):
        raise Http404
    policies = {row.policy_id for row in found}  # type: ignore[attr-defined]
    words = ""
    if len(given) > 2:
        words = "More than two are chosen: two are set side by side."
    elif not given:
        words = "Choose two."
    elif len(found) == 1:
        words = (
            "Choose another one beside it."
            if len(given) == 1
            else f"That is the same {name} twice: nothing differs."
        )
    elif len(policies) > 1:
        words = "They are of two policies, which learn from different conversations: choose two of one."
    offered = rows.filter(policy_id=next(iter(policies))) if len(policies) == 1 else rows
    newest = list(offered.order_by("-created_at", "-id")[:OFFERED])
    return Choice(found, words, [*newest, *(row for row in reversed(found) if row not in newest)])
