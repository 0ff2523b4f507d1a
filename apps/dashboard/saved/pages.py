"""Saved views on the sessions' page: which one is open, and saving, changing and deleting them."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.adapters.models import Policy
from apps.dashboard.lists import chosen_id
from apps.dashboard.models import LONGEST_NAME, SavedView
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.saved import services
from apps.dashboard.saved.filters import NAMES, SessionFilters, opened
from apps.dashboard.saved.selectors import in_order, views_for
from kernel.errors import AttuneError
from kernel.refusals import InOurWords
from kernel.rest.caller import Access


class NameForm(InOurWords):
    """What a view is called, and who sees it."""

    name = forms.CharField(max_length=LONGEST_NAME, label="Name")
    shared = forms.BooleanField(required=False, label="for everybody who sees sessions")


@dataclass(frozen=True, slots=True)
class Shelf:
    """The views that somebody sees, the one that is open, and the filters that the list is shown with."""

    views: Sequence[SavedView]
    view: SavedView | None
    filters: SessionFilters
    """Valid."""
    lost: Sequence[str]
    """Labels of the open view's filters that mean nothing any more."""
    changed: bool
    """Whether the filters are others than those of the open view."""

    @property
    def chosen(self) -> dict[str, str]:
        """What narrows the list."""
        return self.filters.chosen()


def shelf(request: HttpRequest, place: Place, policies: Sequence[Policy]) -> Shelf:
    """Return what the address asks for: a view, filters, or a view with its filters changed.

    Raises Http404.
    """
    views = list(in_order(views_for(place.user.pk)))
    view_id = chosen_id(request, "view")
    view = next((one for one in views if one.pk == view_id), None)
    if view_id is not None and view is None:
        raise Http404
    asked = any(name in request.GET for name in NAMES)
    stored = opened(view, policies) if view is not None else None
    if stored is not None and not asked:
        return Shelf(views, view, stored.filters, stored.lost, changed=bool(stored.lost))
    filters = SessionFilters(request.GET, policies)
    if not filters.is_valid():
        raise Http404
    changed = stored is not None and filters.chosen() != stored.filters.chosen()
    return Shelf(views, view, filters, [], changed=changed)


def save(request: HttpRequest, place: Place, filters: SessionFilters) -> NameForm | str:
    """Save the filters of the list under the name that was typed:
    the view's address, or the form with what is wrong."""
    form = NameForm(request.POST)
    if not form.is_valid():
        return form
    try:
        view = services.save_view(keeper=_keeper(place), filters=filters.chosen(), **form.cleaned_data)
    except AttuneError as error:
        form.add_error("name", error.message)
        return form
    messages.success(request, "Saved.")
    return _address(place, view.pk)


@require_POST
@tenant_page(needs=Access.TALK)
def view(request: HttpRequest, place: Place, view_id: uuid.UUID) -> HttpResponse:
    """Rename or share a view, let it stand for other filters, or delete it."""
    keeper, wish = _keeper(place), request.POST.get("wish", "")
    try:
        if wish == "change":
            form = NameForm(request.POST)
            shared = "shared" in request.POST if "shares" in request.POST else None
            services.change_view(
                keeper=keeper, view_id=view_id, name=form["name"].value() or "", shared=shared
            )
            messages.success(request, "Saved.")
        elif wish == "filters":
            filters = {name: request.POST.get(name, "") for name in NAMES}
            services.change_view(keeper=keeper, view_id=view_id, filters=filters)
            messages.success(request, "Saved.")
        elif wish == "delete":
            services.delete_view(keeper=keeper, view_id=view_id)
            messages.success(request, "Deleted.")
            return redirect("dashboard:sessions", tenant=place.tenant.slug)
        else:
            raise Http404
    except AttuneError as error:
        if error.status == 404:
            raise Http404 from error
        messages.error(request, error.message)
    return redirect(_address(place, view_id))


def _keeper(place: Place) -> services.Keeper:
    return services.Keeper(place.tenant.pk, place.user.pk, place.actor, manages=place.manages)


def _address(place: Place, view_id: uuid.UUID) -> str:
    return f"{reverse('dashboard:sessions', kwargs={'tenant': place.tenant.slug})}?view={view_id}"
