"""A CRD, changes of it, and policies that judge them."""

import copy
import json
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.core.changes.review import ChangeRequest, read_change

Json = dict[str, Any]
GROUP = "example.com"
NAME = f"widgets.{GROUP}"
FIELDS: Json = {
    "color": {"type": "string", "enum": ["red", "blue"]},
    "size": {"type": "integer"},
    "note": {"type": "string"},
}


def definition(fields: Json | None = None, **metadata: Any) -> Json:
    """A CRD whose spec has these fields."""
    spec = {"type": "object", "properties": copy.deepcopy(FIELDS if fields is None else fields)}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, **metadata},
        "spec": {
            "group": GROUP,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "versions": [version],
        },
        "status": {"storedVersions": ["v1"]},
    }


def without(field: str) -> Json:
    """The fields without that one."""
    return {name: each for name, each in FIELDS.items() if name != field}


def review(old: Json | None, new: Any) -> bytes:
    """The AdmissionReview of a change."""
    request = {"uid": "7", "operation": "UPDATE", "object": new, "oldObject": old}
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(body).encode()


def change(old: Json | None, new: Json) -> ChangeRequest:
    """The same, read."""
    return read_change(review(old, new))


def policy(changes: str = "Deny", name: str = "p", **spec: Any) -> DefinitionPolicy:
    body = {"metadata": {"name": name}, "spec": {"changes": changes, **spec}}
    return DefinitionPolicy.model_validate(body)


def widget(number: int, **spec: Any) -> Json:
    """An object, as in a list."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": f"w{number}", "namespace": "default"},
        "spec": spec,
    }
