"""The two versions of a CronTab that both webhooks of the conversion benchmark convert, and its objects."""

import json
from collections.abc import Sequence
from typing import Any, Final

VERSIONS: Final = ("v1", "v1alpha1")
STORAGE: Final = "v1"
NAMESPACE: Final = "default"

_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
_COMMON = {"suspend": {"type": "boolean"}, "replicas": _INTEGER}


def _containers(**memory: Any) -> dict[str, Any]:
    fields = {
        "name": _STRING,
        "image": _STRING,
        "args": {"type": "array", "items": _STRING},
        "env": {"type": "object", "additionalProperties": _STRING},
        **memory,
    }
    return {
        "type": "array",
        "items": {"type": "object", "required": ["name"], "properties": fields},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }


SPECS: Final[dict[str, dict[str, Any]]] = {
    "v1": {
        "host": _STRING,
        "port": _INTEGER,
        "schedule": _STRING,
        **_COMMON,
        "containers": _containers(memory=_STRING),
    },
    "v1alpha1": {
        "hostPort": _STRING,
        "cronSpec": _STRING,
        **_COMMON,
        "containers": _containers(memoryMiB=_INTEGER),
    },
}
RULES: Final[list[dict[str, Any]]] = [
    {"hub": "spec.schedule", "spoke": "spec.cronSpec"},
    {
        "spoke": "spec.hostPort",
        "join": {"template": "{host}:{port}", "parts": {"host": "spec.host", "port": "spec.port"}},
    },
    {
        "hub": "spec.containers",
        "spoke": "spec.containers",
        "each": [{"hub": "memory", "spoke": "memoryMiB", "quantity": "Mi"}],
    },
]


def definition(group: str, client_config: dict[str, Any]) -> dict[str, Any]:
    """The CRD in that group, converted by the webhook at this address."""
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == STORAGE,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": SPECS[version]}},
                }
            },
        }
        for version in VERSIONS
    ]
    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"crontabs.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "crontabs",
                "singular": "crontab",
                "kind": "CronTab",
                "listKind": "CronTabList",
            },
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def rules(group: str) -> dict[str, Any]:
    """The VersionConversion of the CRD in that group."""
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": f"crontabs.{group}"},
        "spec": {
            "resource": {"group": group, "resource": "crontabs"},
            "hub": "v1",
            "spokes": [{"version": "v1alpha1", "rules": RULES}],
        },
    }


def manifest(group: str, version: str, number: int) -> dict[str, Any]:
    """The object with that number, as its author writes it."""
    containers: list[dict[str, Any]] = []
    for name, memory in (("web", 1536), ("worker", 640 + number % 7)):
        container: dict[str, Any] = {
            "name": name,
            "image": f"registry.example.com/reports/{name}:2.14.0",
            "args": ["--verbose", f"--shard={number}"],
            "env": {"LOG_LEVEL": "info", "REGION": "eu-west-1"},
        }
        containers.append(
            {**container, "memory": f"{memory}Mi"} if version == "v1" else {**container, "memoryMiB": memory}
        )
    host, port = f"host-{number}.example.com", 8000 + number % 1000
    spec = {"suspend": False, "replicas": 3, "containers": containers}
    if version == "v1":
        spec |= {"host": host, "port": port, "schedule": "*/5 * * * *"}
    else:
        spec |= {"hostPort": f"{host}:{port}", "cronSpec": "*/5 * * * *"}
    labels = {"app": "reports", "tier": "gold"}
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "CronTab",
        "metadata": {"name": f"crontab-{number:05}", "namespace": NAMESPACE, "labels": labels},
        "spec": spec,
    }


def stored(group: str, version: str, number: int) -> dict[str, Any]:
    """The object as an API server sends it to a webhook: with everything that it adds to metadata."""
    made = manifest(group, version, number)
    fields: dict[str, Any] = {f"f:{key}": {} for key in made["spec"] if key != "containers"}
    each: dict[str, Any] = {f"f:{key}": {} for key in made["spec"]["containers"][0]}
    fields["f:containers"] = {f'k:{{"name":"{name}"}}': {".": {}, **each} for name in ("web", "worker")}
    made["metadata"] |= {
        "uid": f"6f2f4f4e-0000-4000-8000-{number:012x}",
        "resourceVersion": str(100_000 + number),
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [
            {
                "manager": "kubectl-create",
                "operation": "Update",
                "apiVersion": f"{group}/{version}",
                "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}, "f:tier": {}}}, "f:spec": fields},
            }
        ],
    }
    return made


def review(group: str, version: str, objects: Sequence[Any]) -> bytes:
    """The API server's request to convert them to that version."""
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "desiredAPIVersion": f"{group}/{version}",
        "objects": objects,
    }
    asked = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    return json.dumps(asked, separators=(",", ":")).encode()
