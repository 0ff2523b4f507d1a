"""What the description of /api says that the views do not:
how callers are known, and what errors look like."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator

from kernel.tenancy import system_scope


class Generator(SchemaGenerator):
    """Describes views with all tenants in scope:
    it makes querysets to look at their models and reads no row."""

    def get_schema(self, *args: Any, **kwargs: Any) -> Any:
        """Return the description."""
        with system_scope("describe the views"):
            return super().get_schema(*args, **kwargs)  # type: ignore[no-untyped-call]


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A key in the Authorization header."""

    target_class = "apps.keys.rest.KeyAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        del auto_schema
        return {"type": "http", "scheme": "bearer", "bearerFormat": "at-…"}


class BrowserScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The cookie of a signed-in person."""

    target_class = "apps.keys.rest.BrowserAuthentication"
    name = "browser"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        del auto_schema
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "A stable word for programs."},
        "detail": {"type": "string", "description": "For people."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
_REFUSALS = {
    "400": "The input breaks a rule; `errors` names the field.",
    "401": "No valid key.",
    "403": "The key or the role does not allow this.",
    "404": "There is no such thing in the tenant.",
    "409": "The state of the thing does not allow this now.",
    "415": "The body is not JSON.",
    "429": "Too many requests; `Retry-After` says when to come back.",
}


def close_bodies(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of every body that it has the fields described and no others, as `kernel.rest.reading` sees to."""
    schemas = result["components"]["schemas"]
    for name, schema in schemas.items():
        if name.endswith("Request") and schema["type"] == "object":
            schema["additionalProperties"] = False
    for methods in result["paths"].values():
        for operation in methods.values():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                body = schemas.get(media["schema"].get("$ref", "").rpartition("/")[2], {})
                if body.get("minProperties"):  # else it is said by the fields that it requires
                    operation["requestBody"]["required"] = True
    return result


def add_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Give every operation the refusals that it may answer with."""
    result["components"].setdefault("schemas", {})["Problem"] = PROBLEM
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path in result["paths"].values():
        for method, operation in path.items():
            for status, words in _REFUSALS.items():
                if status in {"409", "415"} and method == "get":
                    continue
                operation["responses"].setdefault(status, {"description": words, "content": content})
    return result
