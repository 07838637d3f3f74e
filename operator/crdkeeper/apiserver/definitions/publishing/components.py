"""The schemas that the API server publishes for one version of a CRD.

As in BuildOpenAPIV2 and BuildOpenAPIV3 of k8s.io/apiextensions-apiserver. The server serves them at
`/openapi/v2` and `/openapi/v3/apis/GROUP/VERSION`: those of served versions, once the CRD is established.
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.definitions.fields import DEFINITION
from crdkeeper.apiserver.definitions.publishing.implied import (
    OpenAPI,
    add_embedded_fields,
    add_root_fields,
    list_schema,
)
from crdkeeper.apiserver.definitions.publishing.reduction import reduce
from crdkeeper.apiserver.definitions.publishing.rendering import Published, rendered
from crdkeeper.apiserver.definitions.rules.internalform import Decoded, internal
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.props import PRESERVE, TYPES, Schema, subschemas
from crdkeeper.apiserver.schema.structural import conversion_error, violations
from crdkeeper.apiserver.schema.violation import Report


def published_schemas(document: Mapping[str, Any], version: str, openapi: OpenAPI) -> dict[str, Published]:
    """The schema of a CRD's kind and that of its list, by their component names.

    Without the descriptions of apiVersion, kind and metadata. Empty for a version that is not served. Raises
    UnreadableDefinition for what is not a CRD of apiextensions.k8s.io/v1, or is nested too deeply.
    """
    report = Report()
    try:
        crd = DEFINITION.decode(document, Path("", ()), report)
        if crd is ABSENT or report.violations:
            raise UnreadableDefinition(
                f"{report.violations[0].path}: {report.violations[0].message}" if report.violations else ""
            )
        return _published(crd, version, openapi)
    except RecursionError as error:
        raise UnreadableDefinition("it nests too deep") from error


def component_name(group: str, version: str, kind: str) -> str:
    """The name of a kind in OpenAPI: `com.example.v1.Widget`."""
    return ".".join((*reversed(group.split(".")), version, kind))


def _published(crd: Decoded, version: str, openapi: OpenAPI) -> dict[str, Published]:
    spec = crd.get("spec", {})
    group: str = spec.get("group", "")
    names = internal(crd).names
    kind, list_kind = names.get("kind", ""), names["listKind"]
    for entry in spec.get("versions", ()):
        if entry.get("name", "") == version and entry.get("served"):
            break
    else:
        return {}
    schema = entry.get("schema", {}).get("openAPIV3Schema")
    name, list_name = component_name(group, version, kind), component_name(group, version, list_kind)
    shown = _kind_schema(schema, openapi, preserve=bool(spec.get("preserveUnknownFields")))
    listed = list_schema(kind, list_kind, name, openapi)
    for each, its_kind in ((shown, kind), (listed, list_kind)):
        each["x-kubernetes-group-version-kind"] = [{"group": group, "version": version, "kind": its_kind}]
        selectable = entry.get("selectableFields")
        if selectable:
            each["x-kubernetes-selectable-fields"] = [
                {"fieldPath": field.get("jsonPath", "").removeprefix(".")} for field in selectable
            ]
    return {name: shown, list_name: listed}


def _kind_schema(schema: Schema | None, openapi: OpenAPI, *, preserve: bool) -> Published:
    keeps_unknown = openapi is OpenAPI.V2 and (preserve or bool((schema or {}).get(PRESERVE)))
    if schema is None or keeps_unknown or not _is_structural(schema):
        return {"type": "object"}
    shown = rendered(schema)
    if openapi is OpenAPI.V2:
        reduce(shown)
    add_root_fields(shown, openapi)
    add_embedded_fields(shown, openapi)
    return shown


def _is_structural(schema: Schema) -> bool:
    """Whether the server considers it structural; patterns that only it can check count as valid."""
    if _has_unknown_type(schema) or conversion_error(schema) is not None:
        return False
    report = Report()
    violations(schema, root("schema"), report)
    return not report.violations


def _has_unknown_type(schema: Schema) -> bool:
    type_ = schema.get("type")
    return (bool(type_) and type_ not in TYPES) or any(map(_has_unknown_type, subschemas(schema)))
