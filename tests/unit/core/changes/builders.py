"""A CRD, changes of it, and policies that judge them."""

import copy
import json
from typing import Any

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.definitions.schemas import schemas_of
from crdkeeper.core.changes.review import ChangeRequest, read_change
from crdkeeper.core.conversion.bundle import packed
from crdkeeper.core.conversion.target import WebhookAddress

Json = dict[str, Any]
GROUP = "example.com"
NAME = f"widgets.{GROUP}"
FIELDS: Json = {
    "color": {"type": "string", "enum": ["red", "blue"]},
    "size": {"type": "integer"},
    "note": {"type": "string"},
}
STRING: Json = {"type": "string"}
V1: Json = {"host": STRING, "note": STRING}
V2: Json = {"address": STRING}
MOVED: Json = {"hub": "spec.host", "spoke": "spec.address"}
DROPPED: Json = {"hub": "spec.note", "drop": True}
ADDRESS = WebhookAddress("crdkeeper-system", "crdkeeper-webhook")
OURS: Json = ADDRESS.client_config(NAME)


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


def converted(
    v1: Json = V1, v2: Json | None = V2, *, storage: str = "v1", client_config: Json = OURS
) -> Json:
    """A CRD whose versions differ, converted by a webhook, by default ours; without v2 if it is None."""
    made = definition(v1)
    versions = made["spec"]["versions"]
    if v2 is not None:
        second = copy.deepcopy(versions[0]) | {"name": "v2"}
        second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = v2
        versions.append(second)
    for each in versions:
        each["storage"] = each["name"] == storage
    config = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": config}
    return made


def bundle(*rules: Json, old: Json) -> bytes:
    """What the webhook serves of these rules, verified with the schemas of a CRD."""
    spec = {
        "resource": {"group": GROUP, "resource": "widgets"},
        "hub": "v1",
        "spokes": [{"version": "v2", "rules": list(rules)}],
    }
    return packed(VersionConversionSpec.model_validate(spec), schemas_of(old))


def without(field: str) -> Json:
    """The fields without that one."""
    return {name: each for name, each in FIELDS.items() if name != field}


def review(old: Json | None, new: Any) -> bytes:
    """The AdmissionReview of a change."""
    request = {"uid": "7", "operation": "UPDATE", "object": new, "oldObject": old}
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(body).encode()


def deletion(old: Any) -> bytes:
    """The AdmissionReview of a deletion, as by an API server."""
    request = {"uid": "7", "operation": "DELETE", "object": None, "oldObject": old}
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(body, separators=(",", ":")).encode()


def change(old: Json | None, new: Json) -> ChangeRequest:
    """The same as `review`, read."""
    found = read_change(review(old, new))
    assert isinstance(found, ChangeRequest)
    return found


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
