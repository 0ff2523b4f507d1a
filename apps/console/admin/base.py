"""What every page of the console shares: nothing is edited here, acts are confirmed and audited."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets, get_fields_from_path
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from apps.console import show
from apps.console.admin.paging import FirstPages, FirstPagesList, Made
from apps.console.forms import ReasonForm
from apps.console.names import names_of, shortened
from kernel import audit
from kernel.errors import AttuneError
from kernel.ids import tail
from kernel.refusals import sentence
from kernel.tenancy import system_scope, tenant_scope

if TYPE_CHECKING:  # unfold's class is this one with another look, and is not typed
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    from unfold.admin import ModelAdmin as _ModelAdmin


def is_operator(request: HttpRequest) -> bool:
    """Return whether the person may use the console."""
    return bool(request.user.is_active and request.user.is_staff)


def actor(request: HttpRequest) -> str:
    """Return the person as audit rows name them."""
    return f"user:{request.user.pk}"


@dataclass(frozen=True, slots=True)
class Act:
    """Something an operator may do to a row, after a page that says what will happen.

    `question` says it, `do` (row, who, why) does it and returns the result in words; a refusal is an
    `AttuneError`. `offered` says for which rows it makes sense.
    """

    name: str
    label: str
    question: Callable[[Any], str]
    do: Callable[..., str]
    offered: Callable[[Any], bool]
    form: type[ReasonForm] = ReasonForm
    """What is asked; what it asks besides the reason reaches `do` by name."""
    now: Callable[[Any], Mapping[str, object]] = lambda row: {}
    """What stands in the form before anything is typed: what holds now."""


def named(column: str, description: str) -> Callable[..., SafeString | str]:
    """Return a column that shows whom a name of the audit log stands for; `ConsoleAdmin.names_in` reads them ahead."""

    @admin.display(description=description)
    def shown(_page: object, row: Any) -> SafeString | str:
        token = getattr(row, column)
        words = getattr(row, "names", None)
        return show.named(token, names_of([token]) if words is None else words)

    return shown


class ConsoleAdmin(_ModelAdmin):
    """A page to look at rows. Operators only; no row is added, edited or deleted."""

    actions = None
    # what an empty list says: what makes the first row of it, and how
    fills = ""
    acts: Sequence[Act] = ()
    # columns that a list never shows: long arrays and texts stay in the database
    heavy: Sequence[str] = ()
    # columns with names of the audit log
    names_in: Sequence[str] = ()
    # reading what people wrote leaves an audit row
    holds_text = False
    panels_template = ""

    list_per_page = 50
    paginator = FirstPages
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_filter_sheet = False
    change_form_outer_before_template = "console/before.html"
    change_form_outer_after_template = "console/after.html"

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Allow operators."""
        return is_operator(request)

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Allow operators."""
        return is_operator(request)

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Allow nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Allow nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Allow nobody."""
        return False

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Return rows with what the page shows of related ones; a list without the heavy columns."""
        related = self.list_select_related
        rows = super().get_queryset(request)
        if not isinstance(related, bool):
            rows = rows.select_related(*related)
        match = request.resolver_match
        is_list = match is not None and (match.url_name or "").endswith("_changelist")
        return rows.defer(*self.heavy) if is_list and self.heavy else rows

    @property
    def grows(self) -> bool:
        """Whether there are more of its rows the more is asked of the platform:
        then they come newest first."""
        return tuple(self.ordering or ()) == ("-id",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[FirstPagesList]:
        """Return the list that counts no further than its pages go."""
        return FirstPagesList

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Add the time where rows grow old and their ids carry it."""
        found = list(super().get_list_filter(request))
        return [*found, Made] if self.grows and isinstance(self.opts.pk, models.UUIDField) else found

    def get_sortable_by(self, request: HttpRequest) -> list[Any] | tuple[Any, ...]:
        """Return the columns that a list may be sorted by: none where that would read a large table."""
        return () if self.grows else self.get_list_display(request)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        """Return what was searched for: an id where ids are, by their indexes,
        and anything else where words are."""
        exact = [name.removeprefix("=") for name in self.get_search_fields(request) if name.startswith("=")]
        ids = [
            name for name in exact if isinstance(get_fields_from_path(self.model, name)[-1], models.UUIDField)
        ]
        try:
            key = uuid.UUID(search_term.strip())
        except ValueError:
            key = None
        if key is None or not ids:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(reduce(or_, (models.Q((name, key)) for name in ids))), False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow the links between pages: rows of one tenant, policy or session."""
        return lookup.endswith("__id__exact") or super().lookup_allowed(lookup, value, request)

    def get_readonly_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[str]:
        """Return every field: also those that no form could hold."""
        return [str(name) for name in flatten_fieldsets(self.get_fieldsets(request, obj))]

    def called(self, row: Any) -> str:
        """Return what stands over a row's page."""
        text = str(row)
        return f"{self.opts.verbose_name} {tail(row.pk)}" if text == str(row.pk) else shortened(text)

    def with_names(self, rows: Iterable[Any]) -> None:
        """Let rows know whom the names in them stand for, in a constant number of queries."""
        if self.names_in:
            words = names_of(getattr(row, column) for row in rows for column in self.names_in)
            for row in rows:
                row.names = words

    def panels(self, obj: Any) -> Mapping[str, object]:
        """Return what `panels_template` shows below the row's fields."""
        return {}

    def tenant_of(self, row: Any) -> uuid.UUID | None:
        """Return whose row it is: an act is done in that tenant's scope, and on a row of none in all."""
        tenant_id: uuid.UUID = row.tenant_id
        return tenant_id

    def get_urls(self) -> list[URLPattern]:
        """Add one address per act."""
        name = self.opts.model_name
        act = path(
            "<uuid:object_id>/act/<slug:act_name>/",
            self.admin_site.admin_view(self.act_view),
            name=f"{self.opts.app_label}_{name}_act",
        )
        return [act, *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one row, its panels and the acts it offers."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        if self.holds_text:
            audit.record(
                actor=actor(request),
                action=f"{self.opts.model_name}.read",
                target=f"{self.opts.model_name}:{row.pk}",
                tenant_id=row.tenant_id,
            )
        context = {
            **(extra_context or {}),
            **self.panels(row),
            # what people wrote comes before the row's fields, everything else after them
            "panels_before": self.panels_template if self.holds_text else "",
            "panels_after": "" if self.holds_text else self.panels_template,
            "acts": [(act, self._act_url(row, act)) for act in self.acts if act.offered(row)],
            "title": str(self.opts.verbose_name).capitalize(),
            "subtitle": None,
            "show_history": False,
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    def act_view(self, request: HttpRequest, object_id: uuid.UUID, act_name: str) -> HttpResponse:
        """Ask on GET; on POST do it, record who asked and why, and say what came of it."""
        if not is_operator(request):
            raise PermissionDenied
        row = self.get_object(request, str(object_id))
        act = next((act for act in self.acts if act.name == act_name), None)
        if row is None or act is None:
            raise Http404
        form = act.form(request.POST or None, initial=act.now(row))
        back = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[row.pk])
        if request.method == "POST" and form.is_valid():
            self._do(request, row, act, form.cleaned_data)
            return HttpResponseRedirect(back)
        context = {
            **self.admin_site.each_context(request),
            "title": act.label,
            "opts": self.opts,
            "original": row,
            "act": act,
            "question": act.question(row),
            "form": form,
            "back": back,
        }
        return TemplateResponse(request, "console/confirm.html", context)

    def _do(self, request: HttpRequest, row: Any, act: Act, answers: Mapping[str, Any]) -> None:
        reason = answers["reason"]
        others = {name: value for name, value in answers.items() if name != "reason"}
        # no transaction around it: the service owns one, with its own audit row,
        # and may wait for engines before it
        tenant_id = self.tenant_of(row)
        with (
            system_scope(f"an act on {self.opts.model_name}")
            if tenant_id is None
            else tenant_scope(tenant_id)
        ):
            try:
                outcome = act.do(row, actor(request), reason, **others)
                messages.success(request, f"{act.label}: {outcome}")
            except AttuneError as error:
                outcome = f"not done. {sentence(error.message).rstrip('.')}."
                messages.error(request, f"{act.label}: {outcome}")
            audit.record(
                actor=actor(request),
                action=f"console.{act.name}",
                target=f"{self.opts.model_name}:{row.pk}",
                tenant_id=tenant_id,
                detail={"reason": reason, "outcome": outcome},
            )

    def _act_url(self, row: Any, act: Act) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_act", args=[row.pk, act.name])
