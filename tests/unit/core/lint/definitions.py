"""CRDs to check: a flawless one, and others that differ from it as a test requires."""

from typing import Any

from crdkeeper.apiserver.definitions.create import decode
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.lint.check import check_conventions
from crdkeeper.core.lint.found import Found

Json = dict[str, Any]

TEXT: Json = {"type": "string", "maxLength": 64, "description": "Some text."}
NUMBER: Json = {"type": "integer", "format": "int32", "description": "A number."}
AGE: Json = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
READY: Json = {
    "name": "Ready",
    "type": "string",
    "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
}
CONDITION: Json = {
    "type": "object",
    "description": "One aspect.",
    "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    "properties": {
        **dict.fromkeys(("type", "status", "reason", "message", "lastTransitionTime"), TEXT),
        "observedGeneration": NUMBER,
    },
}
CONDITIONS: Json = {
    "type": "array",
    "description": "All aspects.",
    "maxItems": 8,
    "items": CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def schema(
    spec: Json | None = None, status: Json | None = None, *, spec_keywords: Json | None = None, **root: Any
) -> Json:
    """A schema with these properties of spec, and of status beside conditions."""
    return {
        "type": "object",
        "description": "A widget.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "description": "What is wanted.",
                "properties": {"color": TEXT, **(spec or {})},
                **(spec_keywords or {}),
            },
            "status": {
                "type": "object",
                "description": "What is.",
                "properties": {"conditions": CONDITIONS, **(status or {})},
            },
        },
        **root,
    }


def version(content: Json | None = None, name: str = "v1alpha1", **fields: Any) -> Json:
    """A version with that schema; a field that is None is left out."""
    made = {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": content or schema()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [READY, AGE],
        **fields,
    }
    return {key: value for key, value in made.items() if value is not None}


def definition(*versions: Json, names: Json | None = None, **fields: Any) -> Json:
    """A CRD with these versions, or a flawless one."""
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", **(names or {})},
            "versions": list(versions) or [version()],
        },
    }
    for key, value in fields.items():
        if key in ("status", "metadata"):
            crd[key] = value
        else:
            crd["spec"][key] = value  # type: ignore[index]
    return crd


def check(crd: Json, *, live: bool = False, forbidden: frozenset[str] = frozenset()) -> list[Found]:
    """All findings, none merged with another."""
    decoded = decode(crd, Report())
    assert decoded is not None
    return check_conventions(decoded, None if live else crd, forbidden)


def ids(crd: Json) -> list[str]:
    """The ids of all findings."""
    return [each.rule.id for each in check(crd)]
