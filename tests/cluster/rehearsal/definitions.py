"""CRDs to change: two small ones that have everything, and those of the corpus."""

import copy
from typing import Any

from tests.cluster.definitions.lint.variants import RICH, corpus, definition, version

Json = Any
_NAME = {"type": "string", "maxLength": 40}
_SPEC: Json = {
    "type": "object",
    "properties": {
        "title": _NAME,
        "size": {"type": "string", "enum": ["small", "large", "huge"], "default": "small"},
        "note": {"type": "string", "nullable": True},
        "port": {"x-kubernetes-int-or-string": True},
        "replicas": {"type": "integer", "default": 1, "minimum": 0},
        "ratio": {"type": "number"},
        "paused": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ports": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": _NAME, "number": {"type": "integer"}, "kind": {"type": "string"}},
            },
        },
        "members": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": _NAME,
                    "weight": {"type": "integer", "default": 5},
                    "zone": {"type": "string"},
                },
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "limits": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
        "options": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "payload": {
            "type": "object",
            "properties": {"kind": {"type": "string"}, "metadata": {"type": "string"}},
        },
        "nested": {
            "type": "object",
            "default": {"depth": 2},
            "properties": {"depth": {"type": "integer"}, "mode": {"type": "string", "default": "fast"}},
        },
    },
}
_STATUS: Json = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "phase": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        },
    },
}


def _schema(spec: Json) -> Json:
    return {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": _STATUS}}


def _older() -> Json:
    """The schema of an older version, which lacks some of the fields and has one with another type."""
    spec = copy.deepcopy(_SPEC)
    for name in ("members", "ratio", "nested"):
        del spec["properties"][name]
    spec["properties"]["paused"] = {"type": "boolean", "default": True}
    return _schema(spec)


OWN: tuple[Json, ...] = (
    definition(version("v1", _schema(_SPEC), subresources={"status": {}}), version("v1beta1", _older())),
    definition(version("v2", RICH), version("v1", _older()), scope="Cluster"),
    definition(
        version("v1", copy.deepcopy(_older())),
        version("v2", _schema(copy.deepcopy(_SPEC)), subresources={"status": {}}),
    ),
)


def prepared(crd: Json, group: str) -> Json:
    """A CRD in its own group, without a webhook and other parts of its installation."""
    spec = copy.deepcopy(crd["spec"])
    spec["group"] = group
    spec["conversion"] = {"strategy": "None"}
    spec["names"] = {
        key: each for key, each in spec["names"].items() if key not in ("categories", "shortNames")
    }
    spec.pop("preserveUnknownFields", None)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{spec['names']['plural']}.{group}"},
        "spec": spec,
    }


def all_definitions() -> tuple[Json, ...]:
    """Ours, and the corpus' if there is one."""
    return (*OWN, *corpus())
