"""A CRD and its retirement on a fake API server, and what others do to them at the same time."""

import asyncio
import copy
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from crdkeeper.api.versionretirement import VersionRetirement
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.retirement.evidence import AuditedUses, Evidence, Obstacle
from crdkeeper.operations.retirement import run as run_module
from tests import virtualtime
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi
from tests.unit.core.retirement.cases import NOW, evidence, owner
from tests.unit.jsonpatch import patched

CRD = f"{DEFINITIONS}/dbs.example.com"
MIGRATIONS = f"{OURS}/storagemigrations"
RETIREMENT = f"{OURS}/versionretirements/old"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Api(FakeApi):
    """Allows everything by default, changes CRDs as an API server does, and stores statuses."""

    def __init__(self, crd: Mapping[str, Any]) -> None:
        super().__init__({CRD: dict(crd), RETIREMENT: owner().to_object()})
        self.forbidden: set[tuple[str, str]] = set()
        """Verbs on resources that crdkeeper may not use."""
        self.rival: Mapping[str, Any] | None = None
        """Its spec is put back by somebody else right after each change of the CRD."""
        self.patches = 0
        """Changes of the CRD by crdkeeper, also those that were refused."""
        self.refusal: ApiError | None = None
        """The answer to each change of the CRD."""
        self.beforehand: Callable[[], None] = lambda: None
        """Called before each change of the CRD by crdkeeper: what somebody else does since the look."""
        self.watch: Callable[[], None] = lambda: None
        """Called when the retirement has changed, as a watch reports it."""

    def now(self) -> datetime:
        return NOW + timedelta(seconds=virtualtime.now())

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        plain = path.partition("?")[0]
        if plain == _REVIEWS:
            asked = body["spec"]["resourceAttributes"]
            return {"status": {"allowed": (asked["verb"], asked["resource"]) not in self.forbidden}}
        if (method, plain) == ("PATCH", CRD):
            return self._change(body)
        if (method, plain) == ("PATCH", RETIREMENT):
            await super().request(method, path, body, **options)
            return self.ask(**body["spec"])
        if method == "GET" and plain in self.objects:
            return copy.deepcopy(self.objects[plain])
        answer = await super().request(method, path, body, **options)
        if plain == f"{RETIREMENT}/status":
            stored = self.objects[RETIREMENT]
            stored["status"] = body["status"]
            stored["metadata"]["resourceVersion"] = str(len(self.requests))
            self.watch()
            return copy.deepcopy(stored)
        return answer

    def _change(self, operations: Any) -> dict[str, Any]:
        self.beforehand()
        before = self.objects[CRD]
        self.patches += 1
        if self.refusal is not None:
            raise self.refusal
        try:
            changed = patched(before, operations)
        except ValueError as error:
            raise ApiError(422, {"message": "the server rejected our request"}) from error
        if changed["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
            raise ApiError(409, {"reason": "Conflict", "message": "the object has been modified"})
        made = self._put(changed)
        if self.rival is not None:
            self._put({**before, "spec": self.rival["spec"]})
        return made

    def _put(self, crd: dict[str, Any]) -> dict[str, Any]:
        generation = self.objects[CRD]["metadata"]["generation"] + 1
        metadata = {**crd["metadata"], "generation": generation, "resourceVersion": f"r{generation}"}
        self.objects[CRD] = {**crd, "metadata": metadata}
        return copy.deepcopy(self.objects[CRD])

    def ask(self, **spec: Any) -> dict[str, Any]:
        """Let somebody change the retirement's spec."""
        before = self.objects[RETIREMENT]
        metadata = {**before["metadata"], "generation": before["metadata"]["generation"] + 1}
        self.objects[RETIREMENT] = {**before, "metadata": metadata, "spec": {**before["spec"], **spec}}
        return copy.deepcopy(self.objects[RETIREMENT])

    def annotate(self) -> None:
        """Let somebody else change the CRD's metadata."""
        crd = self.objects[CRD]
        metadata = {**crd["metadata"], "resourceVersion": f"{crd['metadata']['resourceVersion']}a"}
        self.objects[CRD] = {**crd, "metadata": metadata}

    def change(self) -> None:
        """Let somebody else change something in the CRD's spec that does not concern its versions."""
        self._put(self.objects[CRD])

    @property
    def client(self) -> Client:
        return cast(Client, self)

    @property
    def retirement(self) -> VersionRetirement:
        return VersionRetirement.model_validate(self.objects[RETIREMENT])


def refused(name: str) -> ApiError:
    """As an API server answers if there is such an object already."""
    return ApiError(409, {"reason": "AlreadyExists", "message": f"{name} already exists"})


class Gathered:
    """What looks find: nobody uses the version, and by default nothing holds a step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.holds: tuple[Obstacle, ...] = ()
        self.looks = 0
        """How often Compositions and so on were listed."""
        self.beside: Callable[[], None] = lambda: None
        """Called during each look: what somebody else does at that time."""
        self.took = 0.0
        """Seconds that a count takes."""
        self.counted: Callable[[], None] = lambda: None
        """Called at the end of each count."""
        monkeypatch.setattr(run_module, "gather_evidence", self._evidence)
        monkeypatch.setattr(run_module, "gather_holds", self._holds)

    async def _evidence(self, *_: Any, audit: AuditedUses | None) -> Evidence:
        await asyncio.sleep(self.took)
        self.counted()
        return evidence(audit=audit)

    async def _holds(self, *_: Any) -> tuple[Obstacle, ...]:
        self.looks += 1
        self.beside()
        return self.holds


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> Gathered:
    return Gathered(monkeypatch)
