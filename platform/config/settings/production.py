"""A deployment: secrets must be given, cookies travel over TLS only."""

from config import env
from config.settings.base import *  # noqa: F403

SECRET_KEY = env.text("SECRET_KEY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_HSTS_SECONDS = env.integer("SECURE_HSTS_SECONDS", 31_536_000)
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = env.text("EMAIL_HOST", "localhost")
# operators read what people wrote and move what they are answered with: a password alone is not enough
CONSOLE_REQUIRES_MFA = env.flag("CONSOLE_REQUIRES_MFA", default=True)
