"""What all situations share. Every value that a deployment may change is an environment variable."""

from pathlib import Path
from typing import Any

import dj_database_url

from config import env
from kernel.roles import APP_ROLE

BASE_DIR = Path(__file__).resolve().parents[3]
ATTUNE_HOME = env.path("ATTUNE_HOME", BASE_DIR / "var")

SECRET_KEY = env.text("SECRET_KEY", "")
DEBUG = False
ALLOWED_HOSTS = env.listed("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.listed("CSRF_TRUSTED_ORIGINS")
WEB_URL = env.text("WEB_URL", "http://127.0.0.1:8000")
API_BASE = env.text("API_BASE", "http://127.0.0.1:8001/v1")
# where the web itself reaches the gateway, for the playground; people are shown API_BASE
GATEWAY_URL = env.text("GATEWAY_URL", API_BASE).rstrip("/")

FIRST_RUN_FILE: Path | None = None  # a deployment keeps no secrets in a file

# The gateway and the web are two processes of the same code: `asgi_gateway` and `asgi_web` say which.
PROCESS = env.text("ATTUNE_PROCESS", "web")

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.github",
    "allauth.socialaccount.providers.google",
    "allauth.usersessions",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "kernel",
    "apps.accounts",
    "apps.alerts",
    "apps.engines",
    "apps.adapters",
    "apps.keys",
    "apps.conversations",
    "apps.judging",
    "apps.memory",
    "apps.learning",
    "apps.evaluation",
    "apps.environments",
    "apps.governance",
    "apps.gateway",
    "apps.dashboard",
    "apps.console",
]

# The gateway has no pages and no log-in; without these it starts faster and has no middleware to satisfy.
_WEB_ONLY = {
    *("unfold", "django.contrib.admin", "django.contrib.sessions", "django.contrib.messages"),
    *("django.contrib.staticfiles", "allauth", "allauth.account", "rest_framework"),
    *("allauth.mfa", "allauth.usersessions", "django.contrib.humanize", "allauth.socialaccount"),
    *("allauth.socialaccount.providers.github", "allauth.socialaccount.providers.google"),
    *("django_filters", "drf_spectacular"),
    *("apps.console", "apps.dashboard"),
}
if PROCESS == "gateway":
    INSTALLED_APPS = [app for app in INSTALLED_APPS if app not in _WEB_ONLY]

# No GZipMiddleware anywhere near a stream: it holds chunks back. The gateway has no session, no
# cookies and no CSRF, so it has no middleware at all.
_WEB_MIDDLEWARE = [
    "kernel.request_ids.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "apps.console.middleware.OperatorScopeMiddleware",
    "apps.dashboard.middleware.ContentSecurityMiddleware",
    "apps.dashboard.middleware.NothingHoldsNulMiddleware",
    "apps.dashboard.middleware.UnreadableSecretMiddleware",
]
MIDDLEWARE = [] if PROCESS == "gateway" else _WEB_MIDDLEWARE
CSRF_FAILURE_VIEW = "apps.dashboard.errors.form_refused"
ROOT_URLCONF = "config.urls_gateway" if PROCESS == "gateway" else "config.urls_web"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "frontend" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- database: connections take the application's role at once; `kernel.postgres` narrows it per scope
DATABASE_ROLE = env.text("DATABASE_ROLE", APP_ROLE)
DATABASE_POOL = env.integer("DATABASE_POOL", 8)  # connections of one process
# of those, a gateway's on the event loop, which every request's calls share; a stream needs none of them
GATEWAY_LEDGER_CONNECTIONS = env.integer("GATEWAY_LEDGER_CONNECTIONS", 2)
# a pool grows past what its threads hold at once, when several of them wait for the first connection
_POOLED = DATABASE_POOL - (GATEWAY_LEDGER_CONNECTIONS if PROCESS == "gateway" else 0)
DATABASE_OPTIONS: dict[str, Any] = {
    "options": f"-c role={DATABASE_ROLE}",
    "pool": {"min_size": 1, "max_size": max(1, _POOLED), "timeout": 20},
}
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        **dj_database_url.parse(env.text("DATABASE_URL", "postgres:///attune")),
        "ENGINE": "kernel.postgres",
        "CONN_HEALTH_CHECKS": True,
    }
}
DATABASES["default"]["OPTIONS"] = {**DATABASES["default"].get("OPTIONS", {}), **DATABASE_OPTIONS}
DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

_MIGRATED = (
    *("kernel", "accounts", "alerts", "engines", "adapters", "keys", "conversations", "judging"),
    *("memory", "learning", "governance", "dashboard"),
)
MIGRATION_MODULES = {label: f"migrations.{label}" for label in _MIGRATED}

# --- Redis protocol: wake-ups, caches, limits. Losing all of it loses no work.
REDIS_URL = env.text("REDIS_URL", "redis://127.0.0.1:6379/0")
CACHES = {
    "default": {
        "BACKEND": "kernel.caching.SharedOrOwn",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_connect_timeout": 2.0, "socket_timeout": 2.0},
    }
}

# --- people
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
# on: a new account comes in by the link of a mail,
# so that signing up says of no address whether it has one already
SIGNUP_CONFIRMED = env.flag("SIGNUP_CONFIRMED", default=False)
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if SIGNUP_CONFIRMED else "optional"
ACCOUNT_EMAIL_NOTIFICATIONS = (
    True  # a change of an account is told to its address: it may have been somebody else
)
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Attune] "
ACCOUNT_ADAPTER = "apps.accounts.adapter.AccountAdapter"
ACCOUNT_SIGNUP_FORM_CLASS = "apps.dashboard.entrance.NewTenant"
LOGIN_TRIES = 5  # that fail, for one address or one second factor, within …
LOGIN_TRIES_WITHIN_S = 300
ACCOUNT_RATE_LIMITS = {"login_failed": f"10/m/ip,{LOGIN_TRIES}/{LOGIN_TRIES_WITHIN_S}s/key"}
ACCOUNT_FORMS = {
    "login": "apps.accounts.forms.LoginForm",
    "signup": "apps.accounts.forms.SignupForm",
    "add_email": "apps.accounts.forms.AddEmailForm",
    "change_password": "apps.accounts.forms.ChangePasswordForm",
    "set_password": "apps.accounts.forms.SetPasswordForm",
    "reset_password": "apps.accounts.forms.ResetPasswordForm",
    "reset_password_from_key": "apps.accounts.forms.ResetPasswordKeyForm",
    "reauthenticate": "apps.accounts.forms.ReauthenticateForm",
    "confirm_reauthentication_code": "apps.accounts.forms.ConfirmReauthenticationCodeForm",
}
SOCIALACCOUNT_FORMS = {
    "signup": "apps.accounts.forms.LinkedSignupForm",
    "disconnect": "apps.accounts.forms.UnlinkForm",
}
# whom pages and mails name when something goes wrong: an address, the address of a page, or words
OPERATOR_CONTACT = env.text("OPERATOR_CONTACT", "")
SIGNUP_OPEN = env.flag("SIGNUP_OPEN", default=True)  # off: only who was invited signs up
# a provider is offered where this installation has registered with it; its own page to return to is
# WEB_URL/accounts/google/login/callback/ (or github)
SOCIALACCOUNT_PROVIDERS: dict[str, dict[str, Any]] = {
    provider: {
        "APPS": [{"client_id": client_id, "secret": env.text(f"{provider.upper()}_CLIENT_SECRET", "")}]
    }
    for provider in ("google", "github")
    if (client_id := env.text(f"{provider.upper()}_CLIENT_ID", ""))
}
SOCIALACCOUNT_ADAPTER = "apps.dashboard.social.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False  # an address alone, even a verified one, opens nobody's account
SOCIALACCOUNT_STORE_TOKENS = False  # nothing is asked of a provider after the sign-in
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER = "Attune"
MFA_ADAPTER = "apps.accounts.mfa.MFAAdapter"
MFA_FORMS = {
    "authenticate": "apps.accounts.mfa_forms.AuthenticateForm",
    "reauthenticate": "apps.accounts.mfa_forms.ReauthenticateForm",
    "activate_totp": "apps.accounts.mfa_forms.ActivateTOTPForm",
    "add_webauthn": "apps.accounts.mfa_forms.AddWebAuthnForm",
    "edit_webauthn": "apps.accounts.mfa_forms.EditWebAuthnForm",
    "authenticate_webauthn": "apps.accounts.mfa_forms.AuthenticateWebAuthnForm",
    "reauthenticate_webauthn": "apps.accounts.mfa_forms.ReauthenticateWebAuthnForm",
}
CONSOLE_REQUIRES_MFA = env.flag("CONSOLE_REQUIRES_MFA", default=False)
LOGIN_REDIRECT_URL = "/"
LOGIN_URL = "/accounts/login/"

# --- console
UNFOLD = {
    "SITE_TITLE": "Attune console",
    "SITE_HEADER": "Attune",
    "SITE_SUBHEADER": "Console",
    "SITE_SYMBOL": "graphic_eq",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "apps.console.theme.favicon"},
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "STYLES": ["apps.console.theme.tokens_css", "apps.console.theme.console_css"],
    "DASHBOARD_CALLBACK": "apps.console.home.at_a_glance",
    "SIDEBAR": {"navigation": "apps.console.theme.navigation"},
    "COLORS": {
        "base": {
            "50": "oklch(98.4% .003 235)",
            "100": "oklch(96.2% .004 235)",
            "200": "oklch(91.5% .007 235)",
            "300": "oklch(85.5% .01 235)",
            "400": "oklch(72% .014 235)",
            "500": "oklch(55% .016 235)",
            "600": "oklch(45% .018 235)",
            "700": "oklch(37% .018 235)",
            "800": "oklch(29% .016 235)",
            "900": "oklch(19.5% .013 235)",
            "950": "oklch(14% .012 235)",
        },
        "primary": {
            "50": "oklch(97.5% .015 200)",
            "100": "oklch(94.5% .03 200)",
            "200": "oklch(89% .055 200)",
            "300": "oklch(81% .08 201)",
            "400": "oklch(71% .1 203)",
            "500": "oklch(60% .1 205)",
            "600": "oklch(50% .087 207)",
            "700": "oklch(43% .074 209)",
            "800": "oklch(37% .06 211)",
            "900": "oklch(31% .05 213)",
            "950": "oklch(22% .04 215)",
        },
    },
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = ["apps.console.formats"]
STATIC_URL = "/static/"
STATIC_ROOT = None  # whitenoise serves files from where they lie (the next two settings)
STATICFILES_DIRS = [BASE_DIR / "frontend" / "static"]
WHITENOISE_USE_FINDERS = True
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = ATTUNE_HOME / "mail"

DEFAULT_FROM_EMAIL = env.text("MAIL_FROM", "") or "Attune <attune@localhost>"
EMAIL_TIMEOUT = 15

# --- webhooks: private addresses are refused, but for these (10.1.0.0/16, 127.0.0.0/8 …);
# plain http goes nowhere else
WEBHOOK_ALLOWED_NETWORKS = env.listed("WEBHOOK_ALLOWED_NETWORKS")
WEBHOOK_TIMEOUT_S = env.number("WEBHOOK_TIMEOUT_S", 10.0)  # of one attempt, from name look-up to answer
# older keys still open what was sealed under them
SECRET_KEY_FALLBACKS = env.listed("SECRET_KEY_FALLBACKS")

# --- engines and the base model
ENGINE_URLS = env.listed("ENGINE_URLS", "http://127.0.0.1:30000")
ENGINE_API_KEY = env.text("ENGINE_API_KEY", "")
ENGINE_ADMIN_KEY = env.text("ENGINE_ADMIN_KEY", "")
# a sglang-router (--enable-igw, no workers: it is told of them) that generation goes through;
# adapters are loaded on the engines directly
ENGINE_ROUTER_URL = env.text("ENGINE_ROUTER_URL", "").rstrip("/")
# whether all engines draw by a request's own seed, as SGLang does with --enable-deterministic-inference only:
# without it a request with a `seed` is refused, with it every request is given one
ENGINE_HONOURS_SEED = env.flag("ENGINE_HONOURS_SEED", default=False)
ENGINE_TIMEOUT_S = env.number("ENGINE_TIMEOUT_S", 300.0)
# run with an engine's address as last argument when that engine is stuck;
# without it an operator is waited for
ENGINE_RESTART_COMMAND = env.text("ENGINE_RESTART_COMMAND", "")
MODEL_PATH = env.path("MODEL_PATH", ATTUNE_HOME / "models" / "smollm2-135m-instruct" / "bfloat16")
BASE_MODEL_NAME = env.text("BASE_MODEL_NAME", "smollm2-135m-instruct")
CONTEXT_LENGTH = env.integer("CONTEXT_LENGTH", 2048)  # tokens, prompt and reply together
MAX_REPLY_TOKENS = env.integer("MAX_REPLY_TOKENS", 512)  # where the client names no limit
LORA_RANK = env.integer("LORA_RANK", 16)
LORA_ALPHA = env.integer("LORA_ALPHA", 32)
ADAPTER_STORE = env.path("ADAPTER_STORE", ATTUNE_HOME / "adapters")
# mean |Δlogprob| in nats between engine and trainer on the probe tokens: bf16 engines measure 0.03-0.06
PROBE_TOLERANCE = env.number("PROBE_TOLERANCE", 0.15)

# --- gateway
MAX_BODY_BYTES = env.integer("MAX_BODY_BYTES", 2_000_000)
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES
GATEWAY_CONCURRENCY = env.integer("GATEWAY_CONCURRENCY", 256)  # requests at once in one process
# for what is rarer; each keeps one connection,
# and with GATEWAY_LEDGER_CONNECTIONS they are at most DATABASE_POOL
GATEWAY_DATABASE_THREADS = env.integer("GATEWAY_DATABASE_THREADS", 4)
# where nothing is set for a key or a tenant; per minute, 0 is no limit
KEY_LIMITS = {
    "requests": env.integer("KEY_REQUESTS_PER_MINUTE", 6_000),
    "tokens": env.integer("KEY_TOKENS_PER_MINUTE", 2_000_000),
    "concurrent": env.integer("KEY_CONCURRENT", 128),
}
TENANT_LIMITS = {
    "requests": env.integer("TENANT_REQUESTS_PER_MINUTE", 12_000),
    "tokens": env.integer("TENANT_TOKENS_PER_MINUTE", 4_000_000),
    "concurrent": env.integer("TENANT_CONCURRENT", 256),
}
SESSION_IDLE_S = env.number("SESSION_IDLE_S", 900.0)  # after this a session counts as over and is judged

# --- judging
JUDGE_BACKEND = env.text("JUDGE_BACKEND", "cue")  # cue or openai
JUDGE_URL = env.text("JUDGE_URL", "")
JUDGE_MODEL = env.text("JUDGE_MODEL", "")
JUDGE_API_KEY = env.text("JUDGE_API_KEY", "")
JUDGE_TIMEOUT_S = env.number("JUDGE_TIMEOUT_S", 60.0)
JUDGE_VOTES = env.integer("JUDGE_VOTES", 3)
JUDGE_TEMPERATURE = env.number("JUDGE_TEMPERATURE", 0.6)
JUDGE_CONCURRENCY = env.integer("JUDGE_CONCURRENCY", 48)  # requests to the judge at once from one process
# tokens that judging may cost a tenant a day (UTC), read and written; 0 is no cap.
# A tenant's own number counts more
JUDGE_DAILY_TOKENS = env.integer("JUDGE_DAILY_TOKENS", 0)
# for a million tokens, in whatever currency; only shown
JUDGE_PRICE_PROMPT = env.number("JUDGE_PRICE_PROMPT", 0.0)
JUDGE_PRICE_COMPLETION = env.number("JUDGE_PRICE_COMPLETION", 0.0)

# --- memory: what people asked for, in the prompt until the weights hold it
# tokens of a prompt, where a policy says nothing else
MEMORY_BUDGET_TOKENS = env.integer("MEMORY_BUDGET_TOKENS", 160)
# say them after the person's question and not in the system message, which small models hardly heed
MEMORY_REMINDER = env.flag("MEMORY_REMINDER", default=True)
# shadow rollouts: while nobody asks, the weights learn to do without being told
SHADOW_ENABLED = env.flag("SHADOW_ENABLED", default=True)
SHADOW_QUIET_S = env.number("SHADOW_QUIET_S", 2.0)  # nobody asked for so long
SHADOW_MAX_TOKENS = env.integer("SHADOW_MAX_TOKENS", 48)  # of one reply: what a form is decided in
# of one policy, where it says nothing else; with what is written to choose its versions
SHADOW_TOKENS_PER_DAY = env.integer("SHADOW_TOKENS_PER_DAY", 200_000)

# --- trainer
TRAINER_MODEL_PATH = env.path(
    "TRAINER_MODEL_PATH", ATTUNE_HOME / "models" / "smollm2-135m-instruct" / "float32"
)
TRAINER_DEVICE = env.text("TRAINER_DEVICE", "auto")
TRAINER_DTYPE = env.text("TRAINER_DTYPE", "float32")
TRAINER_TOKEN_BUDGET = env.integer("TRAINER_TOKEN_BUDGET", 4096)  # padded tokens in one micro-batch: memory
TRAINER_THREADS = env.integer("TRAINER_THREADS", 1)
TRAINER_RANKS = env.integer(
    "TRAINER_RANKS", 1
)  # processes of the trainer, under torchrun where there are several
TRAINER_TENSOR_PARALLEL = env.integer(
    "TRAINER_TENSOR_PARALLEL", 0
)  # ranks that share one base; 0: all of them
TRAINING_LR = env.number("TRAINING_LR", 4e-4)  # 1e-4 for models of a billion parameters and more
TRAINING_BATCH = env.integer("TRAINING_BATCH", 8)  # samples a step
TRAINING_FLUSH_S = env.number("TRAINING_FLUSH_S", 1800.0)  # a smaller batch is taken after this long
TRAINING_MAX_STALENESS = env.integer("TRAINING_MAX_STALENESS", 4)  # steps along the lineage
LEASE_S = env.number("LEASE_S", 60.0)
# other bounds than those of `apps/learning/drift/bounds.py`, for all policies that set none themselves;
# of those only that of step_k3 was measured, the others are reasoned
DRIFT_BOUNDS = env.mapping("DRIFT_BOUNDS")  # {"step_k3": {"limit": 2.0, "action": "alert"}}
FAIR_QUANTUM_S = env.number(
    "FAIR_QUANTUM_S", 30.0
)  # trainer seconds a tenant may use before the next one's turn
FAIR_DEBT_S = env.number("FAIR_DEBT_S", 3600.0)  # the most that one step can cost its tenant's later turns

# --- exports: written by the ops workers, read by the web processes, so both see this folder
EXPORT_STORE = env.path("EXPORT_STORE", ATTUNE_HOME / "exports")
EXPORT_KEPT_HOURS = env.number("EXPORT_KEPT_HOURS", 72.0)  # before the file of one is deleted
EXPORTS_AT_ONCE = env.integer("EXPORTS_AT_ONCE", 2)  # over all tenants and workers

# --- REST under /api
API_REQUESTS_PER_MINUTE = env.integer("API_REQUESTS_PER_MINUTE", 600)  # of one key or person
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.keys.rest.KeyAuthentication",
        "apps.keys.rest.BrowserAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["kernel.rest.access.EnoughAccess"],
    "DEFAULT_THROTTLE_CLASSES": ["kernel.rest.throttle.CallerThrottle"],
    "DEFAULT_THROTTLE_RATES": {"api": f"{API_REQUESTS_PER_MINUTE}/min"},
    "DEFAULT_PAGINATION_CLASS": "kernel.rest.pages.NewestFirst",
    "DEFAULT_FILTER_BACKENDS": ["kernel.rest.filters.StrictFilters"],
    "URL_FORMAT_OVERRIDE": None,  # there is one format
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["kernel.rest.parsing.ShallowJSON"],
    "DEFAULT_SCHEMA_CLASS": "config.openapi.Described",
    "EXCEPTION_HANDLER": "kernel.rest.problems.handle",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Attune",
    "VERSION": "1",
    "DESCRIPTION": (
        "What a tenant has in Attune, to read and to change. Chat itself is under /v1 of the gateway.\n\n"
        "A key goes into the header: `Authorization: Bearer at-…`; it needs the scope `read` to look and `manage` to "
        "change. Lists come newest first, a page at a time: `next` is the address of the page after it.\n\n"
        "Each answer says how many requests are left: `RateLimit-Limit` a minute, `RateLimit-Remaining` of them, "
        "`RateLimit-Reset` seconds until the oldest no longer counts. Who asks too often gets a 429 with `Retry-After`.\n\n"
        "With an `Idempotency-Key` of one's own, 1 to 255 characters, a wish may be sent again after a broken "
        "connection: it is answered with what the first one made. The same key for another wish is a 409.\n\n"
        "Refusals are problem details (RFC 9457): `code` is a stable word, `errors` names the field."
    ),
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api",
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,  # what a PATCH may leave out, its serializer says
    "DEFAULT_GENERATOR_CLASS": "config.openapi.Generator",
    "ENUM_NAME_OVERRIDES": {
        "TurnStateEnum": "apps.conversations.models.TurnState",
        "TurnKindEnum": "apps.conversations.models.TurnKind",
        "MemoryStateEnum": "apps.memory.entries_api.KEPT_CHOICES",
        "MemorySourceEnum": "apps.memory.models.Source",
        "ScopesEnum": "apps.keys.models.KeyScope",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.openapi.close_bodies",
        "config.openapi.add_problems",
        "config.openapi.add_headers",
        "kernel.rest.links.add_links",
        "config.openapi.add_examples",
        "apps.learning.config_api.add_settings",
    ],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "kernel.redaction.RedactingFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s%(of_request)s",
        }
    },
    "filters": {"request": {"()": "kernel.request_ids.NamesRequest"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request"]}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO")},
}
