"""A deployment: secrets must be given, cookies travel over TLS only."""

from config import env
from config.settings.base import *  # noqa: F403

SECRET_KEY = env.text("SECRET_KEY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_HSTS_SECONDS = env.integer("SECURE_HSTS_SECONDS", 31_536_000)
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
_MAIL_SERVER = env.text("EMAIL_HOST", "")
EMAIL_HOST = _MAIL_SERVER or "localhost"
# where nothing is said of a mail server the link might reach nobody
SIGNUP_CONFIRMED = env.flag("SIGNUP_CONFIRMED", default=bool(_MAIL_SERVER))
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if SIGNUP_CONFIRMED else "optional"
# operators read what people wrote and move what they are answered with: a password alone is not enough
CONSOLE_REQUIRES_MFA = env.flag("CONSOLE_REQUIRES_MFA", default=True)
