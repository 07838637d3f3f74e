"""A decoded CRD in the form that the API server validates.

The server's internal type is older than v1: fields that all versions share are at the top of spec, and their
errors are reported there. Defaults have been filled in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.golang.strings import to_lower
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.props import Schema, equal

Decoded = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """The fields of one version, or those that all versions share; with the server's path to them."""

    path: Path
    own: bool
    """Whether it belongs to one version; otherwise all share it."""
    subresources: Decoded | None
    validation: Decoded | None
    columns: list[Decoded]
    selectable_fields: list[Decoded]

    def place(self, field: str) -> Path:
        """The server's path to a field of a version, and the file's path."""
        if self.own:
            return self.path.child(field)
        name = "validation" if field == "schema" else field
        return self.path.child(name, "versions", 0, field)

    @property
    def schema(self) -> Schema | None:
        found: Schema | None = (self.validation or {}).get("openAPIV3Schema")
        return found

    @property
    def has_status(self) -> bool:
        """Whether it has a status subresource."""
        return self.subresources is not None and "status" in self.subresources


@dataclass(frozen=True, slots=True)
class Spec:
    """The spec of a CRD, as the server represents it internally."""

    path: Path
    spec: Decoded
    versions: list[Decoded]
    shared: Part
    own: list[Part]
    """The part of each version, in the order of the versions."""

    def statuses(self) -> dict[str, bool]:
        """Whether a version has a status subresource, by name: the first of that name, where names repeat."""
        shared = not any(part.subresources is not None for part in self.own)
        found: dict[str, bool] = {}
        for each, part in zip(self.versions, self.own, strict=True):
            found.setdefault(each.get("name", ""), (self.shared if shared else part).has_status)
        return found

    @property
    def any_status(self) -> bool:
        """Whether any version has a status subresource."""
        return self.shared.has_status or any(part.has_status for part in self.own)

    @property
    def schemas(self) -> list[Schema]:
        return [each.schema for each in (self.shared, *self.own) if each.schema is not None]

    @property
    def names(self) -> dict[str, Any]:
        """spec.names with its defaults."""
        names = self.spec.get("names", {})
        return {**default_names(names.get("kind", "")), **names}


def default_names(kind: str) -> dict[str, str]:
    """The names that the server makes of a kind if spec.names lacks them."""
    return {"singular": to_lower(kind), "listKind": f"{kind}List" if kind else ""}


def internal(crd: Decoded) -> Spec:
    """The spec in the server's internal form."""
    path = root("spec")
    spec = crd.get("spec", {})
    versions = spec.get("versions", [])
    schemas = [each.get("schema") for each in versions]
    subresources = [each.get("subresources") for each in versions]
    columns = [each.get("additionalPrinterColumns", []) for each in versions]
    fields = [each.get("selectableFields", []) for each in versions]
    same_schema = _identical(schemas, same_validation)
    same_subresources = _identical(subresources, _same)
    same_columns = _identical(columns, _same)
    same_fields = _identical(fields, _same)
    shared = Part(
        path,
        False,
        subresources[0] if same_subresources else None,
        schemas[0] if same_schema else None,
        columns[0] if same_columns else [],
        fields[0] if same_fields else [],
    )
    own = [
        Part(
            path.child("versions").index(i),
            True,
            None if same_subresources else subresources[i],
            None if same_schema else schemas[i],
            [] if same_columns else columns[i],
            [] if same_fields else fields[i],
        )
        for i in range(len(versions))
    ]
    return Spec(path, spec, versions, shared, own)


def _identical(values: list[Any], same: Callable[[Any, Any], bool]) -> bool:
    return bool(values) and all(same(each, values[0]) for each in values[1:])


def _same(left: Any, right: Any) -> bool:
    return bool(left == right)


def same_validation(left: Decoded | None, right: Decoded | None) -> bool:
    """Whether the server considers the schema stanzas of two versions equal."""
    if left is None or right is None:
        return left is right
    one, other = left.get("openAPIV3Schema"), right.get("openAPIV3Schema")
    if one is None or other is None:
        return one is other
    return equal(one, other)
