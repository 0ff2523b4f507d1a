"""Addresses of the pages for tenants."""

from django.urls import include, path
from django.views.generic import RedirectView

from apps.dashboard import (
    adapters,
    audit_log,
    data,
    drift,
    entrance,
    first,
    keys,
    limits,
    memory,
    overview,
    people,
    reference,
    runs,
    sessions,
    tenants,
    timeline,
    views,
)
from apps.dashboard.compare.runs import compare_runs
from apps.dashboard.compare.versions import compare_versions
from apps.dashboard.playground import page as playground
from apps.dashboard.saved import pages as saved
from apps.dashboard.settings import alerts, judging, policies
from apps.dashboard.settings.new_policy import new_policy

app_name = "dashboard"
_OF_A_TENANT = [
    path("", overview.overview, name="overview"),
    path("first/events", first.first, name="first"),
    path("overview.csv", overview.overview_csv, name="overview_csv"),
    path("sessions", sessions.sessions, name="sessions"),
    path("sessions/<uuid:session_id>", sessions.session, name="session"),
    path("views/<uuid:view_id>", saved.view, name="view"),
    path("playground", playground.playground, name="playground"),
    path("playground/ask", playground.ask, name="ask"),
    path("turns/<uuid:turn_id>", sessions.turn, name="turn"),
    path("turns/<uuid:turn_id>/so-far", timeline.so_far, name="so_far"),
    path("turns/<uuid:turn_id>.json", sessions.turn_json, name="turn_json"),
    path("turns/<uuid:turn_id>/feedback", sessions.feedback, name="feedback"),
    path("memory", memory.memory, name="memory"),
    path("memory/<uuid:preference_id>", memory.preference, name="preference"),
    path("adapters", adapters.adapters, name="adapters"),
    path("adapters/compare", compare_versions, name="compare_versions"),
    path("adapters/<uuid:version_id>", adapters.adapter, name="adapter"),
    path("adapters/<uuid:version_id>/download", adapters.download, name="download"),
    path("policies/<uuid:policy_id>/point", adapters.point, name="point"),
    path("policies/<uuid:policy_id>/train", runs.start, name="train"),
    path("runs", runs.runs, name="runs"),
    path("runs/compare", compare_runs, name="compare_runs"),
    path("runs/events", runs.runs_events, name="runs_events"),
    path("runs/<uuid:run_id>", runs.run, name="run"),
    path("runs/<uuid:run_id>/events", runs.events, name="run_events"),
    path("runs/<uuid:run_id>/cancel", runs.cancel, name="cancel"),
    path("drift", drift.drift, name="drift"),
    path("drift.csv", drift.drift_csv, name="drift_csv"),
    path("policies/<uuid:policy_id>/training", drift.training, name="training"),
    path("reference", reference.reference, name="reference"),
    path("keys", keys.keys, name="keys"),
    path("keys/<uuid:key_id>/rotate", keys.rotate, name="rotate"),
    path("keys/<uuid:key_id>/revoke", keys.revoke, name="revoke"),
    path("keys/<uuid:key_id>/policies", keys.limit, name="key_policies"),
    path("keys/<uuid:key_id>/limits", limits.key_limits, name="key_limits"),
    path("members", people.members, name="members"),
    path("members/<uuid:membership_id>", people.member, name="member"),
    path("invitations", people.invite, name="invite"),
    path("invitations/<uuid:invitation_id>", people.uninvite, name="uninvite"),
    path("settings", people.settings, name="settings"),
    path("data", data.data, name="data"),
    path("data/progress", data.progress, name="data_progress"),
    path("data/audit.csv", audit_log.audit_csv, name="audit_csv"),
    path("data/exports", data.export, name="export"),
    path("data/exports/<uuid:export_id>/download", data.download_export, name="download_export"),
    path("data/exports/<uuid:export_id>/delete", data.drop_export, name="drop_export"),
    path("data/delete", data.delete, name="delete"),
    path("data/deletions/<uuid:erasure_id>", data.deletion, name="deletion"),
    path("settings/policies/new", new_policy, name="new_policy"),
    path("leave", tenants.leave, name="leave"),
    path("settings/policies/<uuid:policy_id>", policies.policy, name="policy_settings"),
    path("settings/limits", limits.tenant_limits, name="tenant_limits"),
    path("settings/judging", judging.judging, name="judging_settings"),
    path("settings/alerts", alerts.alerts, name="alerts_settings"),
    path("settings/alerts/<uuid:endpoint_id>", alerts.endpoint, name="endpoint"),
]
urlpatterns = [
    path("", overview.home, name="home"),
    path("t/<slug:tenant>/", include(_OF_A_TENANT)),
    path("tenants/new", tenants.new_tenant, name="new_tenant"),
    path("invitations/<str:token>", entrance.invitation, name="invitation"),
    path("healthz", views.healthz, name="healthz"),
    path("favicon.ico", RedirectView.as_view(url="/static/attune/favicon.svg"), name="favicon"),
]
