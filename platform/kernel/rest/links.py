"""Where an answer of /api leads: the links of its description, read off the addresses and the shapes that stand in it.

An answer that shows a thing leads to all that stands under the thing's own address, to the lists that can be narrowed to it and
to the things that it names; a page of a list leads to the first thing on it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Things that stand under one address: `/api/policies/{id}`."""

    path: str
    """Of one of them, up to `{id}`."""
    word: str
    """What a field or a filter that names one is called: `policy`."""
    shapes: frozenset[str]
    """The schemas that show one of them."""
    retrieve: str
    """The operation that does."""


def add_links(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Give every answer that shows a thing, or a page of them, the operations that go on from there."""
    described = _Described(result)
    for methods in result["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if not status.startswith("2"):
                    continue
                links = {
                    target: {"operationId": target, "parameters": {parameter: f"$response.body#{pointer}"}}
                    for target, parameter, pointer in described.leads(response)
                    if (target, pointer) != (operation["operationId"], "/id")
                }
                if links:
                    response["links"] = links
    return result


class _Described:
    """The description, and the kinds of things in it."""

    def __init__(self, result: Schema) -> None:
        self.paths: Mapping[str, Mapping[str, Any]] = result["paths"]
        self.schemas: Mapping[str, Schema] = result["components"]["schemas"]
        self.kinds = [
            self._kind(path, methods["get"])
            for path, methods in self.paths.items()
            if path.endswith("/{id}") and "get" in methods
        ]

    def leads(self, response: Schema) -> Iterator[tuple[str, str, str]]:
        """Yield (operation, its parameter, where in the answer its value stands)."""
        name = _shape(response)
        first = _item(self.schemas.get(name, {}))
        for kind in self.kinds:
            if first in kind.shapes:
                yield kind.retrieve, "id", "/results/0/id"
        for at, shape in (("", name), *self._beside(name)):
            shown = next((kind for kind in self.kinds if shape in kind.shapes), None)
            if shown is not None:
                yield from self._under(shown, f"{at}/id")
                yield from self._narrowed(shown, f"{at}/id")
                yield from self._named(shown, shape, at)

    def _kind(self, path: str, get: Schema) -> Kind:
        shape = _shape(get["responses"]["200"])
        listed = self.paths.get(path.removesuffix("/{id}"), {}).get("get", {})
        item = _item(self.schemas.get(_shape(listed["responses"]["200"]), {})) if listed else ""
        return Kind(path, word_for(path.split("/")[-2]), frozenset({shape, item} - {""}), get["operationId"])

    def _beside(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield (pointer, schema) of what an answer shows beside something else: the key of a new secret."""
        for field, schema in self.schemas.get(name, {}).get("properties", {}).items():
            yield f"/{field}", _reference(schema)

    def _under(self, kind: Kind, pointer: str) -> Iterator[tuple[str, str, str]]:
        for path, methods in self.paths.items():
            if path == kind.path or path.startswith(f"{kind.path}/"):
                for operation in methods.values():
                    yield operation["operationId"], "id", pointer

    def _narrowed(self, kind: Kind, pointer: str) -> Iterator[tuple[str, str, str]]:
        for methods in self.paths.values():
            parameters = methods.get("get", {}).get("parameters", ())
            if any((one["in"], one["name"]) == ("query", kind.word) for one in parameters):
                yield methods["get"]["operationId"], kind.word, pointer

    def _named(self, shown: Kind, shape: str, at: str) -> Iterator[tuple[str, str, str]]:
        fields = self.schemas[shape].get("properties", {})
        for kind in self.kinds:
            if kind is not shown and fields.get(kind.word, {}).get("format") == "uuid":
                yield kind.retrieve, "id", f"{at}/{kind.word}"


def word_for(kind: str) -> str:
    """Return what one of a kind is called where it is named: `policy` of `policies`, `reading` of `drift-readings`."""
    word = kind.rpartition("-")[2]
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")


def _shape(response: Schema) -> str:
    content = response.get("content", {}).get("application/json", {})
    return _reference(content.get("schema", {}))


def _item(schema: Schema) -> str:
    return _reference(schema.get("properties", {}).get("results", {}).get("items", {}))


def _reference(schema: Schema) -> str:
    """Return the name of the schema that one stands for, also where words stand beside it; "" for none."""
    parts = [schema, *schema.get("allOf", ())]
    return next((one["$ref"].rpartition("/")[2] for one in parts if "$ref" in one), "")
