"""A deployment: secrets must be given, cookies travel over TLS only."""

from django.core.exceptions import ImproperlyConfigured

from config import env
from config.settings.base import *  # noqa: F403

SECRET_KEY = env.text("SECRET_KEY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_HSTS_SECONDS = env.integer("SECURE_HSTS_SECONDS", 31_536_000)
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = env.text("EMAIL_HOST", "") or "localhost"
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=False)  # STARTTLS
EMAIL_USE_SSL = env.flag("EMAIL_USE_SSL", default=False)  # TLS from the first byte
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    raise ImproperlyConfigured("Set one of EMAIL_USE_TLS (STARTTLS) and EMAIL_USE_SSL, not both.")
EMAIL_PORT = env.integer("EMAIL_PORT", 465 if EMAIL_USE_SSL else 587 if EMAIL_USE_TLS else 25)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD", "")
# whoever signs up reads mail at the address that they gave, before a tenant and its keys are theirs
SIGNUP_CONFIRMED = env.flag("SIGNUP_CONFIRMED", default=True)
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if SIGNUP_CONFIRMED else "optional"
# operators read what people wrote and move what they are answered with: a password alone is not enough
CONSOLE_REQUIRES_MFA = env.flag("CONSOLE_REQUIRES_MFA", default=True)
