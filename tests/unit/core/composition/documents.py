"""CompositeResourceDefinitions to try things on."""

import copy
from typing import Any

Json = Any

SPEC: Json = {
    "type": "object",
    "required": ["engine"],
    "properties": {
        "engine": {"type": "string", "enum": ["Postgres", "MySQL"]},
        "replicas": {"type": "integer", "minimum": 1, "default": 1},
    },
}


def schema(spec: Json = None, status: Json = None, **root: Any) -> Json:
    """A schema with these parts; the root has other keywords besides."""
    parts = {"spec": copy.deepcopy(SPEC if spec is None else spec)}
    if status is not None:
        parts["status"] = status
    return {"type": "object", "properties": parts, **root}


def version(name: str = "v1", of: Json = None, **fields: Any) -> Json:
    """A version with a schema."""
    made = schema() if of is None else of
    return {"name": name, "referenceable": True, "schema": {"openAPIV3Schema": made}, **fields}


def document(*versions: Json, metadata: Json = None, **spec: Any) -> Json:
    """A CompositeResourceDefinition with these versions; by default with one."""
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "databases.platform.example.com", **(metadata or {})},
        "spec": {
            "group": "platform.example.com",
            "names": {"kind": "Database", "plural": "databases"},
            "versions": list(versions) or [version()],
            **spec,
        },
    }
