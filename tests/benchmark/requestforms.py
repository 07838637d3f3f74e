"""The forms of a request that rewrites an object and changes nothing in it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from crdkeeper.api.meta import FIELD_MANAGER
from crdkeeper.cluster.transport.client import JSON_PATCH, MERGE_PATCH, METADATA_ONLY
from tests.benchmark.server import Server

_JSON = "application/json"
_PROTOBUF = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Form:
    """`body` makes it of an object as listed."""

    method: str
    content: str
    body: Callable[[Mapping[str, Any]], Any]
    accept: str = METADATA_ONLY
    subresource: str = ""

    def request(self, server: Server, prefix: str, found: Mapping[str, Any]) -> bytes:
        """The bytes of the request for an object of the resource at `prefix` (/apis/GROUP/VERSION/PLURAL)."""
        metadata, (api, plural) = found["metadata"], prefix.rsplit("/", 1)
        path = f"{api}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}{self.subresource}"
        body = json.dumps(self.body(found))
        return (
            f"{self.method} {path}?fieldManager={FIELD_MANAGER} HTTP/1.1\r\n"
            f"Host: {server.host}:{server.port}\r\n"
            f"Authorization: {server.authorization}\r\n"
            f"Accept: {self.accept}\r\n"
            f"Content-Type: {self.content}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
            f"{body}"
        ).encode()


def _version(found: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}}


def _replaced(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    version = found["metadata"]["resourceVersion"]
    return [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}]


def _applied(found: Mapping[str, Any]) -> dict[str, Any]:
    wanted = ("name", "namespace", "uid", "resourceVersion")
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {field: found["metadata"][field] for field in wanted},
    }


OURS: Final = "merge patch, metadata in the answer (crdkeeper's)"
FORMS: Final[Mapping[str, Form]] = {
    OURS: Form("PATCH", MERGE_PATCH, _version),
    "the same, protobuf in the answer": Form("PATCH", MERGE_PATCH, _version, accept=_PROTOBUF),
    "the same, whole object in the answer": Form("PATCH", MERGE_PATCH, _version, accept=_JSON),
    "the same, of /status": Form("PATCH", MERGE_PATCH, _version, subresource="/status"),
    "JSON patch, metadata in the answer": Form("PATCH", JSON_PATCH, _replaced),
    "PUT, metadata in the answer": Form("PUT", _JSON, lambda found: found),
    "server-side apply (in-tree), whole object": Form("PATCH", _APPLY, _applied, accept=_JSON),
}
