"""The CustomResourceDefinition generated from a CompositeResourceDefinition: always the same one."""

from typing import Any, Final

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition, CompositeVersion
from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.core.composition.injected import may_default_status, with_composite_fields

CATEGORY: Final = "composite"
"""The category of all composites: `kubectl get composite`."""
OWNER: Final = DEFINITION_UID
"""How a CRD says which definition it belongs to.

No owner reference: garbage collection would delete the CRD, and with it all composites, as soon as the
definition is deleted in the foreground, whatever its finalizers and spec.deletion say.
"""
_COLUMNS: Final[tuple[dict[str, Any], ...]] = (
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Synced", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Synced")].status'},
    {"name": "Composition", "type": "string", "jsonPath": ".status.crdkeeper.revision"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


def made_definition(definition: CompositeResourceDefinition) -> dict[str, Any]:
    """The CRD to apply. It has no spec.conversion, which belongs to whoever converts.

    It belongs to the definition, if that has a uid, so was read from a cluster.
    """
    spec = definition.spec
    first_status = all(may_default_status(each.schema_.open_api_schema) for each in spec.versions)
    names = spec.names
    metadata: dict[str, Any] = {"name": definition.metadata.name}
    if spec.metadata is not None:
        metadata |= {key: each for key, each in spec.metadata.to_object().items() if each}
    if definition.metadata.uid is not None:
        annotations: dict[str, str] = metadata.get("annotations") or {}
        metadata["annotations"] = {**annotations, OWNER: definition.metadata.uid}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": spec.group,
            "names": {
                "kind": names.kind,
                "listKind": names.list_kind or f"{names.kind}List",
                "plural": names.plural,
                "singular": names.singular or names.kind.lower(),
                **({"shortNames": list(names.short_names)} if names.short_names else {}),
                "categories": [*names.categories, *({CATEGORY} - set(names.categories))],
            },
            "scope": spec.scope,
            "versions": [_version(each, first_status=first_status) for each in spec.versions],
        },
    }


def _version(version: CompositeVersion, *, first_status: bool) -> dict[str, Any]:
    columns = [each.to_object() for each in version.additional_printer_columns]
    given = {each["name"].lower() for each in columns}
    scale = version.subresources.scale if version.subresources is not None else None
    schema = with_composite_fields(version.schema_.open_api_schema, first_status=first_status)
    made: dict[str, Any] = {
        "name": version.name,
        "served": version.served,
        "storage": version.referenceable,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, **({"scale": scale.to_object()} if scale is not None else {})},
        "additionalPrinterColumns": [
            *columns,
            *(dict(each) for each in _COLUMNS if each["name"].lower() not in given),
        ],
    }
    if version.deprecated:
        made["deprecated"] = True
    if version.deprecation_warning is not None:
        made["deprecationWarning"] = version.deprecation_warning
    if version.selectable_fields:
        made["selectableFields"] = [each.to_object() for each in version.selectable_fields]
    return made
