"""The OpenAPI document, taken apart: so that a test for every route has the new ones by itself."""

from typing import Any, NamedTuple

from leasehold.server.app import document

DOCUMENT = document()
_METHODS = ("get", "put", "post", "delete", "patch")


class Operation(NamedTuple):
    method: str
    path: str
    said: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_question(self) -> bool:
        return self.method == "GET"

    @property
    def body_schema(self) -> dict[str, Any] | None:
        if "requestBody" not in self.said:
            return None
        schema: dict[str, Any] = self.said["requestBody"]["content"]["application/json"]["schema"]
        (reference,) = schema.get("allOf", (schema,))
        return resolved(reference)

    @property
    def example(self) -> dict[str, Any]:
        """The body that the document shows; empty: the operation takes none."""
        if "requestBody" not in self.said:
            return {}
        (shown,) = self.said["requestBody"]["content"]["application/json"]["schema"]["examples"]
        return dict(shown)

    @property
    def parameters(self) -> list[dict[str, Any]]:
        return list(self.said.get("parameters", ()))


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a reference stands for."""
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


OPERATIONS = [
    Operation(method.upper(), path, said)
    for path, item in DOCUMENT["paths"].items()
    for method, said in item.items()
    if method in _METHODS
]
STREAM = "/v1/events"
"""The one answer that does not end by itself."""
