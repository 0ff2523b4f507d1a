"""Which pictures show which page, by the name of its route; and why an address without a picture is no page.

A picture stands in `docs/pages` once for each width and theme. `looking.Looker` takes one only where the browser is at
the route that it is listed under, and `tests/apps/dashboard/test_every_page_is_looked_at.py` compares this table with
the addresses that there are and the pictures that there are.
"""

from collections import defaultdict

from tests.browser.acts import acts

WIDTHS = (360, 1440)
SCHEMES = ("light", "dark")

DASHBOARD: dict[str, tuple[str, ...]] = {
    "dashboard:home": ("nowhere",),
    "dashboard:overview": (
        *("overview", "overview-empty", "first-run-overview", "first-run-key", "first-run-landed"),
        *("first-run-chart", "overview-paused"),
    ),
    "dashboard:playground": ("playground", "playground-refused"),
    "dashboard:sessions": ("sessions", "sessions-empty", "saved-view"),
    "dashboard:session": ("session", "session-answering", "session-judging", "first-run-session"),
    "dashboard:memory": ("memory", "memory-empty"),
    "dashboard:preference": ("preference",),
    "dashboard:adapters": ("adapters", "adapters-empty"),
    "dashboard:compare_versions": ("compare-versions",),
    "dashboard:adapter": ("adapter",),
    "dashboard:runs": ("runs", "runs-empty"),
    "dashboard:compare_runs": ("compare-runs", "compare-choose"),
    "dashboard:run": ("run", "run-open", "run-failed", "first-run-run"),
    "dashboard:drift": ("drift", "drift-empty"),
    "dashboard:reference": ("reference", "reference-memory"),
    "dashboard:keys": ("keys", "keys-empty", "keys-made"),
    "dashboard:rotate": ("key-rotate",),
    "dashboard:revoke": ("key-revoke",),
    "dashboard:key_limits": ("key-limits",),
    "dashboard:new_policy": ("policy-new", "policy-new-refused"),
    "dashboard:new_tenant": ("tenant-new", "tenant-new-refused"),
    "dashboard:leave": ("leave", "leave-last"),
    "dashboard:members": ("members", "members-member"),
    "dashboard:member": ("member-out",),
    "dashboard:settings": ("settings", "settings-viewer"),
    "dashboard:policy_settings": (
        *("settings-policy", "settings-policy-refused"),
        *("settings-retention", "settings-kept"),
    ),
    "dashboard:tenant_limits": ("settings-limits",),
    "dashboard:judging_settings": ("settings-judging",),
    "dashboard:alerts_settings": ("settings-alerts", "settings-alerts-refused"),
    "dashboard:endpoint": ("settings-endpoint",),
    "dashboard:data": ("data", "data-empty", "data-writing", "data-aged"),
    "dashboard:delete": ("delete", "delete-session", "delete-person", "delete-everything"),
    "dashboard:deletion": ("deletion", "deletion-session", "deletion-person", "deletion-everything"),
    "dashboard:invitation": ("invitation", "invitation-signed-in", "invitation-ended"),
}
ACCOUNT: dict[str, tuple[str, ...]] = {
    "account_login": ("login", "login-refused"),
    "account_logout": ("logout",),
    "account_signup": ("signup", "signup-refused"),
    "account_inactive": ("account-closed",),
    "account_reset_password": ("password-reset",),
    "account_reset_password_done": ("password-reset-sent",),
    "account_reset_password_from_key": ("password-new", "password-link-ended"),
    "account_reset_password_from_key_done": ("password-is-set",),
    "account_email_verification_sent": ("email-sent",),
    "account_confirm_email": ("email-confirm", "email-link-ended"),
    "account_email": ("email",),
    "account_change_password": ("password", "password-refused"),
    "account_set_password": ("password-none",),
    "account_reauthenticate": ("reauthenticate",),
    "account_request_reauthentication_code": ("reauthenticate-mail",),
    "account_confirm_reauthentication_code": ("reauthenticate-code",),
    "usersessions_list": ("devices",),
    "mfa_index": ("mfa", "mfa-none"),
    "mfa_authenticate": ("mfa-asked",),
    "mfa_reauthenticate": ("mfa-reauthenticate",),
    "mfa_activate_totp": ("mfa-authenticator",),
    "mfa_deactivate_totp": ("mfa-authenticator-off",),
    "mfa_view_recovery_codes": ("mfa-codes",),
    "mfa_generate_recovery_codes": ("mfa-codes-anew",),
    "mfa_list_webauthn": ("mfa-keys",),
    "mfa_add_webauthn": ("mfa-key-add",),
    "mfa_edit_webauthn": ("mfa-key-name",),
    "mfa_remove_webauthn": ("mfa-key-out",),
    "mfa_reauthenticate_webauthn": ("mfa-key-asked",),
    "socialaccount_connections": ("linked",),
    "socialaccount_signup": ("linked-signup",),
    "socialaccount_login_cancelled": ("linked-cancelled",),
    "socialaccount_login_error": ("linked-error",),
    "github_login": ("linked-github",),
    "google_login": ("linked-google",),
}
CONSOLE: dict[str, tuple[str, ...]] = {
    "admin:index": ("console",),
    "admin:accounts_tenant_changelist": ("console-tenants",),
    "admin:accounts_tenant_change": ("console-tenant",),
    "admin:adapters_policy_change": ("console-policy",),
    "admin:adapters_adapterversion_change": ("console-version",),
    "admin:conversations_session_change": ("console-session",),
    "admin:conversations_turn_change": ("console-turn",),
    "admin:judging_judgement_change": ("console-judgement",),
    "admin:learning_trainingrun_changelist": ("console-runs",),
    "admin:learning_trainingrun_change": ("console-run",),
    "admin:learning_sample_change": ("console-sample",),
    "admin:learning_driftreading_changelist": ("console-drift", "console-drift-empty"),
    "admin:engines_engine_changelist": ("console-engines",),
    "admin:engines_engine_change": ("console-engine",),
    "admin:kernel_outboxmessage_changelist": ("console-outbox",),
    "admin:kernel_auditentry_changelist": ("console-audit",),
}
CONSOLE_LISTS = (
    "accounts_enduser",
    "accounts_mail",
    "accounts_membership",
    "accounts_user",
    "adapters_adapterversion",
    "adapters_gateresult",
    "adapters_pointermove",
    "adapters_policy",
    "alerts_alert",
    "alerts_delivery",
    "alerts_webhookendpoint",
    "conversations_feedback",
    "conversations_session",
    "conversations_turn",
    "engines_desiredadapter",
    "engines_loadedadapter",
    "judging_judgement",
    "judging_judgespend",
    "judging_rejudging",
    "judging_rubric",
    "keys_apikey",
    "learning_crossing",
    "learning_sample",
    "learning_trainingpause",
    "memory_lesson",
    "memory_memorysetting",
    "memory_preference",
)
"""Lists of the console with one picture each, under the name of what is listed."""
CONSOLE |= {
    f"admin:{model}_changelist": (f"console-list-{model.partition('_')[2]}",) for model in CONSOLE_LISTS
}
_ACTS: dict[str, list[str]] = defaultdict(list)
for _one in acts():
    _ACTS[_one.route].append(_one.name)
CONSOLE_ACTS = {route: tuple(names) for route, names in _ACTS.items()}
"""Pages that ask before an act of the console is done, from where the console knows the acts: a new one has its
picture or its test fails."""
TYPICAL_ACTS = ("console-act-policy-to-base", "console-act-tenant-limits")
"""With a picture in each width and theme, the shortest page and the longest; of the others stands one."""
DONE = {
    "admin:accounts_tenant_change": ("console-act-done",),
    "admin:learning_trainingrun_change": ("console-act-refused",),
}
"""What is said once an act was done, and where it was not."""
ONCE = frozenset(name for names in CONSOLE_ACTS.values() for name in names if name not in TYPICAL_ACTS)
"""Looked at in every width and theme, with a picture at 1440 px by day only."""
for _route, _names in DONE.items():
    CONSOLE[_route] += _names


def variants(name: str) -> list[tuple[int, str]]:
    """Return the widths and themes that a picture stands in."""
    return [(1440, "light")] if name in ONCE else [(width, scheme) for width in WIDTHS for scheme in SCHEMES]


PAGES = DASHBOARD | ACCOUNT | CONSOLE | CONSOLE_ACTS
ERRORS = (
    *("error-403", "error-404", "error-429", "error-500"),
    *("error-form", "error-nothing-to-ask", "error-secret"),
)
"""Pictures of what is shown in place of any page."""

WITHOUT_PICTURES: dict[str, str] = {}
NO_PAGES = {
    **dict.fromkeys(
        ("dashboard:first", "dashboard:run_events", "dashboard:runs_events"), "a stream of events"
    ),
    **dict.fromkeys(("dashboard:data_progress", "dashboard:so_far"), "a piece of a page"),
    **dict.fromkeys(("dashboard:overview_csv", "dashboard:drift_csv", "dashboard:audit_csv"), "CSV"),
    **dict.fromkeys(("dashboard:download", "dashboard:download_export"), "a file"),
    "dashboard:turn_json": "JSON",
    "dashboard:turn": "leads to its session",
    "dashboard:favicon": "leads to the icon",
    "dashboard:healthz": "for whoever watches the process",
    "mfa_download_recovery_codes": "plain text",
    **dict.fromkeys(
        (
            *(
                "dashboard:ask",
                "dashboard:feedback",
                "dashboard:point",
                "dashboard:train",
                "dashboard:cancel",
            ),
            *("dashboard:training", "dashboard:key_policies"),
            *("dashboard:invite", "dashboard:uninvite", "dashboard:export"),
            *("dashboard:drop_export", "dashboard:view", "google_login_by_token"),
        ),
        "only taken as a form",
    ),
    **dict.fromkeys(("github_callback", "google_callback"), "leads on, or shows `linked-error`"),
    "account_confirm_login_code": "signing in by a code is switched off: leads away",
}
