"""Mails to people: how each stands, and those that were given up once more."""

from django.contrib import admin
from django.utils import timezone
from django.utils.safestring import SafeString

from apps.accounts import mails
from apps.accounts.models import Mail, MailState
from apps.console import show
from apps.console.admin.base import Act, ConsoleAdmin


def _words_left(mail: Mail) -> bool:
    return mail.state == MailState.DEAD and mail.sealed != "" and mail.words_until > timezone.now()


def _replay(mail: Mail, who: str, why: str) -> str:
    del why  # kept in the audit row
    mails.replay(mail_id=mail.pk, actor=who)
    return "it is tried again now, from the start."


@admin.register(Mail)
class MailAdmin(ConsoleAdmin):
    """Mails to people, without what they say: it may open an account. Dead ones can be replayed."""

    fills = "Signing up, an invitation, a lost password and each change of an account send one."
    list_display = (
        *("about", "goes_to", "state_chip", "attempts", "reason"),
        *("replayable_until", "due_at", "created_at"),
    )
    list_filter = ("state",)
    search_fields = ("=recipient",)
    ordering = ("-id",)
    fields = (
        *("about", "goes_to", "state_chip", "attempts", "reason"),
        *("replayable_until", "due_at", "created_at", "id"),
    )
    acts = (
        Act(
            name="replay",
            label="Replay the mail",
            question=lambda mail: (
                f"The mail to {mail.recipient} ({mail.about}) is sent again from the start, with all its tries, under the same "
                f"Message-ID. What it says, a link perhaps, is good until {mail.words_until:%Y-%m-%d %H:%M} UTC."
            ),
            do=_replay,
            offered=_words_left,
        ),
    )

    def tenant_of(self, row: Mail) -> None:
        """A mail is no tenant's."""

    @admin.display(description="about")
    def about(self, mail: Mail) -> str:
        """Return what it is about, in words."""
        return mail.about

    @admin.display(description="to")
    def goes_to(self, mail: Mail) -> str:
        """Return the person's address."""
        return mail.recipient

    @admin.display(description="state")
    def state_chip(self, mail: Mail) -> SafeString:
        """Return how it stands."""
        return show.chip(mail.state)

    @admin.display(description="can be replayed until")
    def replayable_until(self, mail: Mail) -> str:
        """Return when what a dead one says has ended, where it has not."""
        return show.moment(mail.words_until if _words_left(mail) else None)
