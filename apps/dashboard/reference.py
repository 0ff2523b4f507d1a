"""The reference of /api, from the description that is checked in: what can be asked, with what, and what comes back.

Written by the server in plain HTML: the usual viewers of OpenAPI write styles and scripts into the page, which its policy refuses.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.dashboard.lists import chosen_word
from apps.dashboard.places import Place, tenant_page

DESCRIPTION = Path(settings.BASE_DIR) / "docs" / "openapi.json"
_DEEPEST = 4  # fields within fields


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body or an answer; `a.b[].c` is a field within."""

    name: str
    kind: str
    words: str
    required: bool
    where: str = ""
    """Of a parameter: path, query or header."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What can be asked of one address."""

    name: str
    tag: str
    method: str
    path: str
    words: list[str]
    """Paragraphs."""
    parameters: list[Field]
    body: list[Field]
    status: str
    """Of a success."""
    answer: list[Field]
    refusals: list[tuple[str, str]]
    """Status and when."""
    asked: str
    """The rest of a curl, after the address of the platform."""
    answered: str
    """An answer as JSON; "" where there is none."""

    @property
    def summary(self) -> str:
        """The first sentence."""
        return self.words[0].partition(". ")[0].rstrip(".")


@dataclass(frozen=True, slots=True)
class Reference:
    """All of it."""

    words: list[str]
    tags: dict[str, list[Operation]]


@require_safe
@tenant_page()
def reference(request: HttpRequest, place: Place) -> HttpResponse:
    """Show all operations in a line each, or those of one kind of thing whole."""
    found = read()
    of = chosen_word(request, "of", list(found.tags))
    return place.show(
        request,
        "reference",
        section="reference",
        reference=found,
        of=of,
        operations=found.tags.get(of, []),
        base=request.build_absolute_uri("/").rstrip("/"),
        description=reverse("api:openapi"),
    )


@cache
def read() -> Reference:
    """Return the reference; it is read once, as it changes with the code alone."""
    described = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    tags: dict[str, list[Operation]] = {}
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            tags.setdefault(one["tags"][0], []).append(_operation(described, path, method, one))
    return Reference(_paragraphs(described["info"]["description"]), dict(sorted(tags.items())))


def _operation(described: Mapping[str, Any], path: str, method: str, one: Mapping[str, Any]) -> Operation:
    status = next(status for status in one["responses"] if status.startswith("2"))
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {})
    answer = one["responses"][status].get("content", {}).get("application/json", {})
    refusals = [
        (number, _found(described, response)["description"])
        for number, response in one["responses"].items()
        if not number.startswith("2")
    ]
    return Operation(
        name=one["operationId"],
        tag=one["tags"][0],
        method=method.upper(),
        path=path,
        words=_paragraphs(one["description"]),
        parameters=[_parameter(described, parameter) for parameter in one.get("parameters", ())],
        body=list(_fields(described, body.get("schema", {}))),
        status=status,
        answer=list(_fields(described, answer.get("schema", {}))),
        refusals=refusals,
        asked=_curl(path, method, one, body.get("example")),
        answered=json.dumps(answer["example"], indent=2, ensure_ascii=False) if "example" in answer else "",
    )


def _paragraphs(text: str) -> list[str]:
    return [" ".join(one.split()) for one in text.split("\n\n")]


def _words(text: str) -> str:
    """Return a description in one line, with what it says of choices where that is more than their names."""
    said, _, choices = text.partition("* `")
    listed = [one.partition("` - ") for one in f"{choices}".splitlines()]
    named = [(name.removeprefix("* `"), label) for name, _, label in listed if label]
    more = [(name, label) for name, label in named if label.casefold() != name.replace("_", " ").casefold()]
    return " ".join(f"{said} {'; '.join(f'`{name}`: {label}' for name, label in more)}".split())


def _curl(path: str, method: str, one: Mapping[str, Any], body: Any) -> str:
    for parameter in one.get("parameters", ()):
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
    lines = [path, '  -H "Authorization: Bearer $ATTUNE_KEY"']
    if method != "get":
        lines.insert(1, f"  -X {method.upper()}")
    if body is not None:
        lines.append("  -H 'Content-Type: application/json'")
        lines.append(f"  -d {shlex.quote(json.dumps(body, ensure_ascii=False))}")
    return " \\\n".join(lines)


def _parameter(described: Mapping[str, Any], one: Mapping[str, Any]) -> Field:
    schema = one["schema"]
    return Field(
        name=one["name"],
        kind=_kind(described, schema),
        words=_words(one.get("description", "")),
        required=one.get("required", False),
        where=one["in"],
    )


def _fields(
    described: Mapping[str, Any], schema: Mapping[str, Any], within: str = "", depth: int = 0
) -> Iterator[Field]:
    """Yield the fields of a schema and of what is in them, in their order."""
    schema = _found(described, schema)
    if schema.get("type") == "array":
        yield from _fields(described, schema["items"], f"{within}[]" if within else "", depth)
        return
    for name, inner in schema.get("properties", {}).items():
        full = f"{within}.{name}" if within else name
        yield Field(
            name=full,
            kind=_kind(described, inner),
            words=_words(inner.get("description", "")),
            required=name in schema.get("required", ()),
        )
        if depth < _DEEPEST:
            yield from _fields(described, inner, full, depth + 1)


def _found(described: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference, or the only part of a whole, stands for."""
    while True:
        if "$ref" in schema:
            kind, name = schema["$ref"].split("/")[2:]
            schema = described["components"][kind][name]
            continue
        parts = [one for one in schema.get("allOf", schema.get("oneOf", ())) if _says_more(one)]
        if len(parts) == 1 and "properties" not in schema:
            schema = {**parts[0], **{name: schema[name] for name in ("nullable",) if name in schema}}
            continue
        return schema


def _says_more(part: Mapping[str, Any]) -> bool:
    return not str(part.get("$ref", "")).endswith(("/NullEnum", "/BlankEnum"))


def _kind(described: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return in words what values are: their type, choices and bounds."""
    nullable = schema.get("nullable") or not all(_says_more(one) for one in schema.get("oneOf", ()))
    schema = _found(described, schema)
    kind = schema.get("format") or schema.get("type") or "anything"
    if "enum" in schema:
        kind = " | ".join(str(one) for one in schema["enum"] if one not in (None, ""))
    elif kind == "array":
        kind = f"list of {_kind(described, schema['items'])}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        kind += f", {low:g} to {high:g}" if isinstance(low, float) else f", {low} to {high}"
    elif low is not None:
        kind += f", at least {low}"
    elif high is not None:
        kind += f", at most {high}"
    if "maxLength" in schema:
        kind += f", up to {schema['maxLength']} characters"
    return f"{kind}, or null" if nullable or schema.get("nullable") else kind
