"""Who exists: users, tenants, memberships, and the end users a tenant's client names."""

from typing import ClassVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now

from apps.accounts.names import LONGEST_END_USER
from kernel.ids import uuid7
from kernel.tenant_models import TenantModel

LONGEST_PAUSE_REASON = 400


class UserManager(BaseUserManager["User"]):
    """Users are known by their email address."""

    def create_user(self, email: str, password: str | None = None, **extra: object) -> "User":
        """Create a user; without a password the account can only log in by other means."""
        user = self.model(email=self.normalize_email(email).lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: object) -> "User":
        """Create an operator."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractUser):
    """A person who logs in. Operators are staff."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    username = None  # type: ignore[assignment]
    email = models.EmailField(unique=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.email


class Tenant(models.Model):
    """A customer: the unit of isolation, of fairness and of personalisation."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(
        unique=True,
        max_length=40,
        validators=[RegexValidator(r"^[a-z][a-z0-9-]*$", "Lower-case letters, digits and hyphens.")],
    )
    name = models.CharField(max_length=120)
    training_enabled = models.BooleanField(default=True, help_text="Off: turns are stored, never trained on.")
    created_at = models.DateTimeField(auto_now_add=True)
    paused_at = models.DateTimeField(null=True, editable=False)
    pause_reason = models.CharField(
        max_length=LONGEST_PAUSE_REASON,
        default="",
        db_default="",  # a process from before the column names none
        blank=True,
        editable=False,
        help_text="The tenant reads it.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(paused_at__isnull=True, pause_reason="")
                | (models.Q(paused_at__isnull=False) & ~models.Q(pause_reason="")),
                name="tenant_paused_with_a_reason",
            )
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_paused(self) -> bool:
        """Whether an operator stopped it: it asks for nothing, and nothing of it begins."""
        return self.paused_at is not None


class Role(models.TextChoices):
    """What a member may do, from most to least."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


class Membership(TenantModel):
    """A user's role in a tenant."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"


class Invitation(TenantModel):
    """Somebody who was asked to join. The link's token is stored as a hash."""

    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role.choices)
    token_sha256 = models.BinaryField(max_length=32, unique=True)
    inviter = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "email"],
                condition=models.Q(accepted_at__isnull=True),
                name="invitation_once_open",
            ),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="invitation_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.email} {self.role}"


class MailState(models.TextChoices):
    """The life of a mail; a dead one was tried for hours, and can be replayed while it has its words."""

    PENDING = "pending"
    SENT = "sent"
    DEAD = "dead"


class Mail(models.Model):
    """A mail to a person on its way. What it says is sealed, and only here while somebody may need it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=100, help_text="What it is about, in a word.")
    recipient = models.EmailField()
    sealed = models.TextField(blank=True, help_text="Subject and text, sealed (kernel.sealing).")
    state = models.CharField(max_length=10, choices=MailState.choices, default=MailState.PENDING)
    attempts = models.PositiveIntegerField(
        default=0, help_text="Claims so far; an older holder's result counts for nothing."
    )
    retries = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Failures since it was written or replayed."
    )
    due_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True)
    words_until = models.DateTimeField(
        db_default=Now(), help_text="When what it says has ended; a dead mail keeps its words until then."
    )
    reason = models.CharField(max_length=300, blank=True, help_text="Why the last attempt came to nothing.")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=MailState.values), name="mail_state_known"),
            models.CheckConstraint(
                condition=(models.Q(state=MailState.PENDING) & ~models.Q(sealed=""))
                | models.Q(state=MailState.SENT, sealed="", claimed_until__isnull=True)
                | models.Q(state=MailState.DEAD, claimed_until__isnull=True),
                name="mail_keeps_its_words_until_it_is_sent",
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(state=MailState.PENDING), name="mail_due"),
            models.Index(fields=["words_until"], condition=models.Q(state=MailState.DEAD), name="mail_dead"),
        ]

    def __str__(self) -> str:
        return f"{self.about} to {self.recipient}"

    @property
    def about(self) -> str:
        """What it is about, in words: the last part of its template's name."""
        return self.kind.rpartition("/")[2].replace("_", " ")


class EndUser(TenantModel):
    """The person behind a tenant's client, as named by OpenAI's `user` field."""

    external_id = models.CharField(max_length=LONGEST_END_USER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "external_id"], name="end_user_once")]

    def __str__(self) -> str:
        return self.external_id
