"""The admin of tests on a cluster: a wrong trim fails the test, and leaves nothing to the next one."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from tests.cluster.harness import guarded as module
from tests.cluster.harness.guarded import guarded
from tests.controlplane.cluster import Cluster

CRD = "widgets.example.com"


class FakeAdmin:
    """Applies one CRD, and knows whether it has cleaned up."""

    made: "FakeAdmin"

    def __init__(self, _: Cluster, *, template: object, on_definition: Callable[[str], None]) -> None:
        self.template, self.apply = template, on_definition
        self.clean = False
        FakeAdmin.made = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def clean_up(self) -> None:
        self.clean = True


class FakeEtcd:
    """One CRD whose objects are stored at that version, of which storedVersions has only v2."""

    def __init__(self, version: str) -> None:
        self.version = version

    def get(self, _: str) -> dict[str, Any]:
        return {"status": {"storedVersions": ["v2"]}}

    def stored_versions(self, group: str, _: str) -> Counter[str]:
        return Counter({f"{group}/{self.version}": 1})


@pytest.fixture(autouse=True)
def fake_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Admin", FakeAdmin)


async def used(version: str) -> None:
    cluster = cast(Cluster, SimpleNamespace(etcd=FakeEtcd(version)))
    async with guarded(cluster):
        FakeAdmin.made.apply(CRD)


async def test_a_true_trim_passes() -> None:
    await used("v2")
    assert FakeAdmin.made.clean


async def test_a_wrong_trim_fails_and_what_was_created_goes() -> None:
    with pytest.raises(AssertionError, match=f"storedVersions of {CRD}"):
        await used("v1")
    assert FakeAdmin.made.clean
