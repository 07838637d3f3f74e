"""Thousands of CRDs in a cluster within seconds: one is created, etcd gets copies of it.

Creating thousands by requests keeps an API server busy for an hour.
"""

import json
from typing import Any, Final

from tests.controlplane.plane import ControlPlane

_GROUP_SIZE: Final = 10
"""CRDs in an API group: on each change, the API server rewrites the OpenAPI document of the whole group."""
_PREFIX: Final = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
_UID: Final = "00000000-0000-4000-8000-{:012d}"
_PLURAL: Final = "widgets"
FIELDS: Final = 150
"""In the spec of each: a CRD of 36 KB. Half of 104 published CRDs have less than 10 KB, which are 40."""


def put_definitions(plane: ControlPlane, count: int, fields: int = FIELDS) -> int:
    """Creates that many; returns the size of one as JSON. The API server needs a while to load them."""
    plane.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(_definition(fields)))
    plane.kubectl.wait_established(f"crd/{name(0)}")
    model = plane.etcd.raw(_PREFIX + name(0))
    assert model is not None
    uid = json.loads(model)["metadata"]["uid"]
    for number in range(1, count):
        copy = model
        for ours, theirs in (
            (_plural(0), _plural(number)),
            (_kind(0), _kind(number)),
            (_group(0), _group(number)),
            (uid, _UID.format(number)),
        ):
            copy = copy.replace(ours.encode(), theirs.encode())
        plane.etcd.put(_PREFIX + name(number), copy)
    return len(model)


def remove_definitions(plane: ControlPlane, count: int) -> None:
    """Removes them in the same way."""
    for number in range(count):
        plane.etcd.delete(_PREFIX + name(number))


def _plural(number: int) -> str:
    return f"{_PLURAL}{number:05d}"


def _kind(number: int) -> str:
    return f"WidgetKind{number:05d}"


def _group(number: int) -> str:
    return f"bench{number // _GROUP_SIZE:04d}.example.com"


def name(number: int) -> str:
    return f"{_plural(number)}.{_group(number)}"


def is_one(name: str) -> bool:
    """Whether the CRD of that name is one of them."""
    return name.startswith(_PLURAL)


def _definition(count: int) -> dict[str, Any]:
    names = {
        "plural": _plural(0),
        "singular": f"{_plural(0)}one",
        "kind": _kind(0),
        "listKind": f"{_kind(0)}List",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name(0)},
        "spec": {
            "group": _group(0),
            "names": names,
            "scope": "Namespaced",
            "versions": [version("At first.", count)],
        },
    }


def version(description: str, count: int = FIELDS) -> dict[str, Any]:
    """Their one version, with a description and so many fields in its spec."""
    fields = {
        f"field{number:03d}": {
            "type": "object",
            "description": f"Setting {number} of the widget, described as long as is usual in such CRDs.",
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z]+$"},
            },
        }
        for number in range(count)
    }
    return {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": description,
                "properties": {
                    "spec": {"type": "object", "properties": fields},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                },
            }
        },
    }
