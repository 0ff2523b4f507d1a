"""What the console is called and what its side bar offers (settings: `UNFOLD`)."""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse

_GROUPS: list[tuple[str, list[tuple[str, str, str]]]] = [
    (
        "People",
        [
            ("Tenants", "accounts_tenant", "apartment"),
            ("Users", "accounts_user", "person"),
            ("Memberships", "accounts_membership", "badge"),
            ("Keys", "keys_apikey", "key"),
            ("End users", "accounts_enduser", "group"),
        ],
    ),
    (
        "Conversations",
        [
            ("Sessions", "conversations_session", "forum"),
            ("Turns", "conversations_turn", "chat"),
            ("Feedback", "conversations_feedback", "thumbs_up_down"),
            ("Judgements", "judging_judgement", "gavel"),
            ("Rubrics", "judging_rubric", "straighten"),
            ("Re-judging", "judging_rejudging", "restart_alt"),
            ("Judge spend", "judging_judgespend", "payments"),
            ("Preferences", "memory_preference", "bookmark"),
        ],
    ),
    (
        "Learning",
        [
            ("Samples", "learning_sample", "dataset"),
            ("Runs", "learning_trainingrun", "model_training"),
            ("Drift readings", "learning_driftreading", "show_chart"),
            ("Crossings", "learning_crossing", "trending_up"),
            ("Training pauses", "learning_trainingpause", "pause_circle"),
            ("Policies", "adapters_policy", "tune"),
            ("Memory settings", "memory_memorysetting", "psychology"),
            ("Lessons", "memory_lesson", "school"),
            ("Versions", "adapters_adapterversion", "layers"),
            ("Pointer moves", "adapters_pointermove", "swap_horiz"),
            ("Gate results", "adapters_gateresult", "rule"),
        ],
    ),
    (
        "Fleet",
        [
            ("Engines", "engines_engine", "memory"),
            ("Loaded adapters", "engines_loadedadapter", "download_done"),
            ("Wanted adapters", "engines_desiredadapter", "inventory_2"),
        ],
    ),
    (
        "Alerts",
        [
            ("Alerts", "alerts_alert", "notifications"),
            ("Deliveries", "alerts_delivery", "send"),
            ("Webhook endpoints", "alerts_webhookendpoint", "webhook"),
        ],
    ),
    (
        "Record",
        [
            ("Outbox", "kernel_outboxmessage", "outbox"),
            ("Mails", "accounts_mail", "mail"),
            ("Audit", "kernel_auditentry", "history_edu"),
        ],
    ),
]


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the side bar."""
    del request
    home = {"items": [{"title": "At a glance", "icon": "monitoring", "link": reverse("admin:index")}]}
    groups = [
        {
            "title": title,
            "separator": True,
            "items": [
                {"title": name, "icon": icon, "link": reverse(f"admin:{page}_changelist")}
                for name, page, icon in pages
            ],
        }
        for title, pages in _GROUPS
    ]
    return [home, *groups]


def tokens_css(request: HttpRequest) -> str:
    """Return the address of colour, space and type."""
    del request
    return static("attune/tokens.css")


def console_css(request: HttpRequest) -> str:
    """Return the address of the console's own parts."""
    del request
    return static("attune/console.css")


def favicon(request: HttpRequest) -> str:
    """Return the address of the icon."""
    del request
    return static("attune/favicon.svg")
