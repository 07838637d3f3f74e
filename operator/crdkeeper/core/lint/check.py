"""All conventions, applied to one CRD that the API server would accept, or nearly so."""

from collections.abc import Callable, Mapping
from typing import Any

from crdkeeper.core.lint.checkeddefinition import CheckedDefinition, CheckedVersion
from crdkeeper.core.lint.columns import check_columns
from crdkeeper.core.lint.conversion import check_conversion
from crdkeeper.core.lint.expressions import check_comparison, check_rules
from crdkeeper.core.lint.found import Findings, Found
from crdkeeper.core.lint.lists import check_array
from crdkeeper.core.lint.names import check_names
from crdkeeper.core.lint.objects import check_field, check_object
from crdkeeper.core.lint.place import SchemaPlace, root_place, walk
from crdkeeper.core.lint.publishing import check_publishing
from crdkeeper.core.lint.scalars import (
    check_boolean,
    check_forbidden,
    check_integer,
    check_keywords,
    check_number,
    check_string,
)
from crdkeeper.core.lint.scale import check_scale
from crdkeeper.core.lint.severity import Severity
from crdkeeper.core.lint.size import check_size
from crdkeeper.core.lint.status import check_status, check_status_in_manifest
from crdkeeper.core.lint.versions import check_versions

OF_DEFINITION: tuple[Callable[[CheckedDefinition, Findings], None], ...] = (
    check_names,
    check_versions,
    check_conversion,
    check_status_in_manifest,
    check_size,
)
"""Checks of a CRD as a whole. These and the others run, and their findings are listed, in this order."""

OF_VERSION: tuple[Callable[[CheckedVersion, Findings], None], ...] = (
    check_columns,
    check_status,
    check_scale,
)
"""Checks of a version that is served or stored."""

OF_TYPE: Mapping[str, Callable[[SchemaPlace, Findings], None]] = {
    "object": check_object,
    "array": check_array,
    "string": check_string,
    "integer": check_integer,
    "number": check_number,
    "boolean": check_boolean,
}
"""Checks of the nodes of a schema that have this type."""


def _check_type(place: SchemaPlace, found: Findings) -> None:
    check = OF_TYPE.get(place.schema.get("type") or "")
    if check is not None:
        check(place, found)


OF_NODE: tuple[Callable[[SchemaPlace, Findings], None], ...] = (
    check_field,
    check_keywords,
    check_publishing,
    _check_type,
    check_rules,
    check_comparison,
)
"""Checks of each node of a schema."""


def check_conventions(
    crd: Mapping[str, Any],
    manifest: Mapping[str, Any] | None = None,
    forbidden: frozenset[str] = frozenset(),
) -> list[Found]:
    """All findings for a CRD as the API server decodes it.

    `manifest` is the CRD as written by an author; None if it was read from a cluster. `forbidden` are
    keywords that schemas must not use.
    """
    found = Findings()
    definition = CheckedDefinition(crd, manifest)
    for check in OF_DEFINITION:
        check(definition, found)
    for i, version in enumerate(definition.versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        # Nobody can use a version that is not served; it will be removed as it is.
        if not isinstance(schema, dict) or not (version.get("served") or version.get("storage")):
            continue
        root = root_place(version.get("name") or str(i), i, schema)
        checked = CheckedVersion(version, root, unpruned=bool(definition.spec.get("preserveUnknownFields")))
        first = len(found.items)
        for check_version in OF_VERSION:
            check_version(checked, found)
        for place in walk(root):
            for check_node in OF_NODE:
                check_node(place, found)
            if forbidden and not forbidden.isdisjoint(place.schema):
                check_forbidden(place, forbidden, found)
        if version.get("deprecated"):
            found.items[first:] = map(_as_of_old, found.items[first:])
    return found.items


def _as_of_old(found: Found) -> Found:
    """A finding in a deprecated version, which nobody improves any more."""
    return found._replace(severity=Severity.INFO) if found.severity is Severity.WARNING else found
