"""People, memberships, keys."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from apps.accounts.models import EndUser, Membership, User
from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin
from apps.keys.models import ApiKey
from apps.keys.selectors import effective, idle, with_roles
from apps.keys.services import revoke_key


@admin.register(User)
class UserAdmin(ConsoleAdmin):
    """People who log in. Never the password's hash."""

    fills = "People sign up, or are invited by a tenant; `manage.py first_run` makes the operator."
    list_display = ("email", "is_operator", "is_active", "last_login", "joined_at")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email",)
    ordering = ("email",)
    fields = ("email", "is_operator", "is_active", "last_login", "joined_at", "id")

    @admin.display(description="created at", ordering="date_joined")
    def joined_at(self, user: User) -> str:
        """Return when they signed up."""
        return show.moment(user.date_joined)

    @admin.display(boolean=True, ordering="is_staff", description="operator")
    def is_operator(self, user: User) -> bool:
        """Whether they may see this console."""
        return user.is_staff


@admin.register(Membership)
class MembershipAdmin(ConsoleAdmin):
    """Who may do what in which tenant."""

    fills = (
        "Who signs up owns a tenant of their own; others join one by an invitation, under Members in its "
        "dashboard."
    )
    list_display = ("user", "tenant", "role", "created_at")
    list_select_related = ("user", "tenant")
    list_filter = ("role", "tenant")
    search_fields = ("user__email", "tenant__slug")
    ordering = ("tenant__slug", "user__email")
    fields = ("tenant", "user", "role", "created_at")

    def called(self, row: Membership) -> str:
        """Say who is what where."""
        return f"{row.user} in {row.tenant}"


@admin.register(EndUser)
class EndUserAdmin(ConsoleAdmin):
    """The people behind a tenant's client, by the name the client gave."""

    fills = "A request to /v1 that names somebody (`user`) makes one, under the tenant of its key."
    list_display = ("named", "tenant", "created_at")
    list_select_related = ("tenant",)
    list_filter = ("tenant",)
    search_fields = ("=external_id",)
    ordering = ("-id",)
    fields = ("tenant", "named", "created_at", "id")

    @admin.display(description="name")
    def named(self, end_user: EndUser) -> str:
        """Return what the client calls them."""
        return end_user.external_id


def _revoke(key: ApiKey, who: str, why: str) -> str:
    del why  # kept in the audit row
    revoke_key(tenant_id=key.tenant_id, key_id=key.pk, actor=who)
    return f"{key} answers no request from now on."


@admin.register(ApiKey)
class ApiKeyAdmin(ConsoleAdmin):
    """Keys by their public half."""

    fills = "A key is made under Keys in a tenant's dashboard, or by `manage.py create_key`."
    list_display = ("public", "name", "tenant", "user", "scope_words", "state", "last_used_at", "created_at")
    list_select_related = ("tenant", "user")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "tenant")
    search_fields = ("=public_id", "name", "user__email", "tenant__slug")
    ordering = ("-id",)
    heavy = ("secret_sha256",)
    fields = (
        "public",
        "name",
        "tenant",
        "user",
        "scope_words",
        "state",
        "expires_at",
        "revoked_at",
        "last_used_at",
        "created_at",
    )
    acts = (
        Act(
            name="revoke",
            label="Revoke the key",
            question=lambda key: f"{key} ({key.name}) of {key.user} stops working at once and for good.",
            do=_revoke,
            offered=lambda key: key.revoked_at is None,
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        """Add what each one's person's role gives."""
        return with_roles(super().get_queryset(request))

    @admin.display(description="key")
    def public(self, key: ApiKey) -> str:
        """Return the half that may be shown."""
        return str(key)

    @admin.display(description="scopes")
    def scope_words(self, key: ApiKey) -> str:
        """Return what it may do, and what its person's role does not give it."""
        said = [*effective(key), *(f"{scope} (does not count)" for scope in idle(key))]
        return ", ".join(said)

    @admin.display
    def state(self, key: ApiKey) -> SafeString:
        """Say whether it works."""
        if key.revoked_at is not None:
            return show.chip("revoked")
        if key.expires_at is not None and key.expires_at <= timezone.now():
            return show.chip("expired")
        return show.chip("ready")
