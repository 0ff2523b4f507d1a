"""Tests: fast password hashes, mail in memory, values that need no environment."""

from config.settings.base import *  # noqa: F403

SECRET_KEY = "tests-only"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
# one connection per thread, so that a test's transaction is the one that its code sees
DATABASES["default"]["OPTIONS"].pop("pool", None)  # noqa: F405
