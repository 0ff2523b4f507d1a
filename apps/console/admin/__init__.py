"""The operators' console, a module for each kind of rows. Logging in happens where everybody logs in."""

from allauth.account.decorators import secure_admin_login
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.models import Group

from apps.console.admin import (
    alerts,
    drift,
    feedback,
    fleet,
    judging,
    mails,
    memory,
    people,
    policies,
    record,
    sessions,
    tenants,
    training,
    turns,
    versions,
)

__all__ = [
    "alerts",
    "drift",
    "feedback",
    "fleet",
    "judging",
    "mails",
    "memory",
    "people",
    "policies",
    "record",
    "sessions",
    "tenants",
    "training",
    "turns",
    "versions",
]

admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.unregister(
    [Group, EmailAddress, Authenticator, UserSession, SocialAccount, SocialApp, SocialToken]
)
