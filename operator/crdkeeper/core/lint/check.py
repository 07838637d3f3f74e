"""All conventions, applied to one CRD that the API server would accept, or nearly so."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.schema.props import VALIDATIONS
from crdkeeper.core.lint import registry
from crdkeeper.core.lint.columns import check_columns
from crdkeeper.core.lint.conversion import check_conversion
from crdkeeper.core.lint.expressions import check_rules
from crdkeeper.core.lint.found import Findings, Found
from crdkeeper.core.lint.lists import check_array
from crdkeeper.core.lint.names import check_names
from crdkeeper.core.lint.objects import check_field, check_object
from crdkeeper.core.lint.place import Place, root_place, walk
from crdkeeper.core.lint.publishing import check_publishing
from crdkeeper.core.lint.scalars import (
    check_boolean,
    check_integer,
    check_keywords,
    check_number,
    check_string,
)
from crdkeeper.core.lint.scale import check_scale
from crdkeeper.core.lint.size import check_size
from crdkeeper.core.lint.status import check_status
from crdkeeper.core.lint.versions import check_versions

_BY_TYPE = {
    "object": check_object,
    "array": check_array,
    "string": check_string,
    "integer": check_integer,
    "number": check_number,
    "boolean": check_boolean,
}


def check_conventions(crd: Mapping[str, Any], manifest: Mapping[str, Any] | None = None) -> list[Found]:
    """All findings in a CRD as the API server decodes it.

    `manifest` is what an author writes and users apply; none for a CRD that was read from a cluster.
    """
    found = Findings()
    metadata, spec = crd.get("metadata") or {}, crd.get("spec") or {}
    check_names(spec, found)
    versions = spec.get("versions") or ()
    check_versions(versions, found)
    check_conversion(metadata, spec, found, live=manifest is None)
    if manifest is not None:
        if manifest.get("status"):
            found.add(registry.STATUS_IN_MANIFEST, "status", ("status",), "the manifest has a status")
        check_size(manifest, found)
    for i, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        # A version that is not served is no one's to use; it goes as it is.
        if not isinstance(schema, dict) or not (version.get("served") or version.get("storage")):
            continue
        root = root_place(version.get("name") or str(i), i, schema)
        check_columns(version, root, found)
        check_status(version, root, found)
        check_scale(version, root, found, unpruned=bool(spec.get("preserveUnknownFields")))
        for place in walk(root):
            _check_node(place, found)
    return found.items


def _check_node(place: Place, found: Findings) -> None:
    schema = place.schema
    check_field(place, found)
    check_keywords(place, found)
    check_publishing(place, found)
    check = _BY_TYPE.get(schema.get("type") or "")
    if check is not None:
        check(place, found)
    if VALIDATIONS in schema:
        check_rules(place, found)
