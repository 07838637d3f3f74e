"""The objects that all contestants rewrite, and the changes of their storage version."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.benchmark.meter import Meter
from tests.controlplane.plane import ControlPlane

GROUP: Final = "bench.example.com"
PLURAL: Final = "sites"
CRD: Final = f"{PLURAL}.{GROUP}"
PREFIX: Final = f"/registry/{GROUP}/{PLURAL}/"
NAMESPACES: Final = 3

_NAMESPACE_PREFIX = "/registry/namespaces/"
_SETTLE_SECONDS = 3.0
"""A single API server sees a new storage version within milliseconds."""
_QUIET = 0.2
"""Cores that an idle API server uses at most."""
_QUIET_TIMEOUT = 600.0

_TEMPLATE = ("bench-00000", "site-0000000", "00000000-0000-0000-0000-000000000000")
_VERSIONS = ("v1", "v2")


class WrongResult(Exception):
    """Something is not stored as it should be: the figures are worthless."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What makes a rewrite of an object expensive: by default nothing does."""

    rules: int = 0
    """CEL rules, which read the routes."""
    managers: int = 1
    """Field managers besides the one of the status, each with labels of its own."""
    routes: int = 2
    """About 70 bytes each."""


class Subject:
    """The CRD and its objects on one control plane."""

    def __init__(
        self, plane: ControlPlane, shape: Shape | None = None, *, namespaces: int = NAMESPACES
    ) -> None:
        self._plane = plane
        self._shape = shape or Shape()
        self._namespaces = namespaces
        self.count = 0
        self.size = 0
        """Bytes of one object as stored."""
        self.version = "v1"
        """The storage version."""
        self._make_namespaces()
        self._apply("v1")
        plane.kubectl.wait_established(f"crd/{CRD}")

    def grow(self, count: int) -> None:
        """Create `count` objects, stored at the current storage version.

        One is created through the API server; the others are copies of its stored bytes, put into etcd: a
        million of them take minutes instead of an hour, and no rewrite can tell the difference.
        """
        if not self.count:
            self._make_first()
        model = self._plane.etcd.raw(PREFIX + "/".join(_TEMPLATE[:2]))
        if model is None:
            raise WrongResult("the first object is not in etcd")
        self.size = len(model)
        uid = json.loads(model)["metadata"]["uid"]
        self._plane.etcd.put_all(self._copies(model, uid, range(max(1, self.count), count)))
        self.count = count
        self.check()

    def flip(self) -> str:
        """Change the storage version; returns it when all writes use it and the API server is idle."""
        old = self.version
        self.version = next(each for each in _VERSIONS if each != old)
        self._apply(self.version)
        time.sleep(_SETTLE_SECONDS)
        self._warm_up()
        found = self._plane.etcd.stored_versions(GROUP, PLURAL)
        if found != {f"{GROUP}/{old}": self.count}:
            raise WrongResult(f"after the flip to {self.version} etcd holds {dict(found)} already")
        return self.version

    def check(self) -> None:
        """Raises WrongResult unless etcd stores all objects at the storage version."""
        found = self._plane.etcd.stored_versions(GROUP, PLURAL)
        if found != {f"{GROUP}/{self.version}": self.count}:
            raise WrongResult(
                f"of {self.count:,} objects etcd should hold all at {self.version}, but holds {dict(found)}"
            )

    def writes(self) -> Counter[int]:
        """How many objects have been written how often."""
        return self._plane.etcd.writes(PREFIX)

    def _warm_up(self) -> None:
        """Have the API server load all objects for the changed CRD now, not at the cost of a contestant.

        It reads them into its watch cache, once per version, on the first request for any.
        """
        for version in _VERSIONS:
            self._plane.kubectl("get", "--raw", f"/apis/{GROUP}/{version}/{PLURAL}?limit=1")
        meter = Meter({"apiserver": self._plane.api_servers[0].pid})
        deadline = time.monotonic() + _QUIET_TIMEOUT
        before = meter.read()
        while time.monotonic() < deadline:
            time.sleep(1.0)
            now = meter.read()
            used = before.until(now)
            if used.cpu["apiserver"] < _QUIET * used.seconds:
                return
            before = now
        raise WrongResult("the API server does not come to rest after a flip")

    def _make_namespaces(self) -> None:
        """As `grow`: one through the API server, and copies of it."""
        name = _TEMPLATE[0]
        self._plane.kubectl("create", "namespace", name)
        model = self._plane.etcd.raw(_NAMESPACE_PREFIX + name)
        uid = self._plane.kubectl("get", "namespace", name, "--output=jsonpath={.metadata.uid}")
        if model is None or uid.encode() not in model:
            raise WrongResult("the first namespace is not in etcd")

        def copy(number: int) -> tuple[str, bytes]:
            # As long as the original: in protobuf, lengths are stored.
            other = _namespace(number)
            value = model.replace(uid.encode(), _uid(uid, number).encode())
            return _NAMESPACE_PREFIX + other, value.replace(name.encode(), other.encode())

        self._plane.etcd.put_all(copy(number) for number in range(1, self._namespaces))

    def _make_first(self) -> None:
        namespace, name, _ = _TEMPLATE
        site = json.dumps(_site(namespace, name, self._shape.routes))
        self._plane.kubectl("apply", "--server-side", "-f", "-", input=site)
        for number in range(1, self._shape.managers):
            self._plane.kubectl(
                *("label", PLURAL, name, f"--namespace={namespace}", f"team-{number}=yes"),
                f"--field-manager=team-{number}",
            )
        status = json.dumps({"status": _STATUS})
        where = (PLURAL, name, f"--namespace={namespace}", "--subresource=status")
        self._plane.kubectl("patch", *where, "--type=merge", f"--patch={status}")

    def _copies(self, model: bytes, uid: str, numbers: range) -> Iterator[tuple[str, bytes]]:
        shown = time.monotonic()
        for number in numbers:
            namespace, name = _namespace(number % self._namespaces), f"site-{number:07}"
            value = model.replace(uid.encode(), _uid(uid, number).encode())
            value = value.replace(_TEMPLATE[1].encode(), name.encode())
            value = value.replace(_TEMPLATE[0].encode(), namespace.encode())
            yield f"{PREFIX}{namespace}/{name}", value
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                print(f"  {number:,} objects", file=sys.stderr, flush=True)

    def _apply(self, storage: str) -> None:
        crd = json.dumps(_definition(storage, self._shape.rules))
        self._plane.kubectl("apply", "--server-side", "-f", "-", input=crd)


def _namespace(number: int) -> str:
    return f"bench-{number:05}"


def _uid(model: str, number: int) -> str:
    return f"{model[:24]}{number:012x}"


def _definition(storage: str, rules: int) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": "site", "kind": "Site", "listKind": "SiteList"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == storage,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": _schema(rules)},
                }
                for version in _VERSIONS
            ],
        },
    }


def _schema(rules: int) -> dict[str, Any]:
    if not rules:
        return _SCHEMA
    spec = _SCHEMA["properties"]["spec"]
    checks = [
        {"rule": f"self.routes.all(each, each.timeoutSeconds < {number + 1000})"} for number in range(rules)
    ]
    with_rules = {**spec, "x-kubernetes-validations": checks}
    return {**_SCHEMA, "properties": {**_SCHEMA["properties"], "spec": with_rules}}


def _site(namespace: str, name: str, routes: int) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Site",
        "metadata": {"namespace": namespace, "name": name, "labels": {"tier": "gold"}},
        "spec": {
            "host": "www.example.com",
            "replicas": 3,
            "image": {"repository": "registry.example.com/sites/frontend", "tag": "2.14.0"},
            "routes": [
                {"path": "/", "backend": "frontend", "timeoutSeconds": 30},
                *({"path": "/api", "backend": "api", "timeoutSeconds": 10} for _ in range(1, routes)),
            ],
        },
    }


_STATUS = {
    "readyReplicas": 3,
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "AllReplicasReady",
            "message": "All replicas answer.",
        }
    ],
}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_STRING = {"type": "string", "maxLength": 256}
_SCHEMA = _object(
    spec={
        **_object(
            host=_STRING,
            replicas={"type": "integer", "minimum": 0},
            image=_object(repository=_STRING, tag=_STRING),
            routes={
                "type": "array",
                "maxItems": 256,
                "items": _object(path=_STRING, backend=_STRING, timeoutSeconds={"type": "integer"}),
            },
        ),
        "required": ["host"],
    },
    status=_object(
        readyReplicas={"type": "integer"},
        conditions={
            "type": "array",
            "items": _object(type=_STRING, status=_STRING, reason=_STRING, message=_STRING),
        },
    ),
)
