"""Making a policy: its name, how it learns, and what teaches it."""

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from apps.adapters.models import POLICY_NAME, Policy
from apps.adapters.services import create_policy
from apps.dashboard.places import Place, tenant_page
from apps.dashboard.settings.forms import WORDS, complain
from apps.learning.config import described, resolve
from apps.learning.configuring import configure
from apps.learning.presets import PRESETS
from kernel.errors import AttuneError, Conflict
from kernel.refusals import InOurWords
from kernel.rest.caller import Access


def _methods() -> list[tuple[str, str]]:
    return [(word, WORDS[word]) for word in described()["method"]["enum"]]


class NewPolicyForm(InOurWords):
    """What a policy is called, and how it is to learn; all else is set on the page of its settings."""

    name = forms.RegexField(
        POLICY_NAME,
        max_length=60,
        label="Name",
        error_messages={
            "invalid": "Name: lower-case letters, digits, dots, hyphens and underscores, a letter first."
        },
    )
    preset = forms.ChoiceField(choices=[(one.name, one.name) for one in PRESETS], label="Preset")
    method = forms.ChoiceField(choices=_methods, label="What teaches")


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(needs=Access.MANAGE)
def new_policy(request: HttpRequest, place: Place) -> HttpResponse:
    """Ask for a name and how it learns; make it, and go on to its settings."""
    form = NewPolicyForm(
        request.POST if request.method == "POST" else None,
        initial={"preset": PRESETS[0].name, "method": resolve({}).method},
    )
    if request.method == "POST" and form.is_valid():
        try:
            made = _made(place, form)
        except Conflict:
            form.add_error("name", "Name: there is a policy of this name already. Choose another one.")
        except AttuneError as error:
            complain(form, error)
        else:
            messages.success(request, f"Made. Clients ask it as the model {made.name}.")
            return redirect("dashboard:policy_settings", tenant=place.tenant.slug, policy_id=made.pk)
    return place.show(
        request,
        "policy_new",
        section="settings",
        form=form,
        presets=PRESETS,
        policies=Policy.objects.order_by("name"),
    )


def _made(place: Place, form: NewPolicyForm) -> Policy:
    """Make the policy and its first configuration, both or neither."""
    asked = form.cleaned_data
    config = {"method": asked["method"]} if asked["method"] != resolve({}).method else {}
    with transaction.atomic():
        made = create_policy(tenant=place.tenant, name=asked["name"], actor=place.actor)
        configure(policy_id=made.pk, actor=place.actor, config=config, preset=asked["preset"])
    return made
