"""One root for every error that a caller may see; the faces render it in their own format."""

from collections.abc import Mapping


class AttuneError(Exception):
    """A refusal that a caller can act on.

    `code` is a stable machine-readable word, `status` the HTTP status it maps to, `field` the input
    that caused it (a dotted path) and `retry_after_s` the seconds to wait before a retry makes sense.
    """

    code = "error"
    status = 400

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after_s = retry_after_s
        self.detail = dict(detail or {})
        if code is not None:
            self.code = code


class InvalidInput(AttuneError):
    """The input breaks a stated rule; `field` names it."""

    code = "invalid_input"


class Unauthenticated(AttuneError):
    """No valid credential came with the request."""

    code = "unauthenticated"
    status = 401


class Forbidden(AttuneError):
    """The credential is valid and does not allow this."""

    code = "forbidden"
    status = 403


class NotFound(AttuneError):
    """There is no such thing in the caller's tenant (another tenant's thing looks the same)."""

    code = "not_found"
    status = 404


class Conflict(AttuneError):
    """The state of the row does not allow this change now."""

    code = "conflict"
    status = 409


class TooLarge(AttuneError):
    """The input is over a stated limit."""

    code = "too_large"
    status = 413


class RateLimited(AttuneError):
    """Too many requests for now; `retry_after_s` says when to come back."""

    code = "rate_limited"
    status = 429


class Unavailable(AttuneError):
    """A part this request needs does not answer; trying again later may work."""

    code = "unavailable"
    status = 503


class TenantScopeRequired(RuntimeError):
    """A tenant's rows were asked for with no tenant in scope: a bug, never a caller's mistake."""
