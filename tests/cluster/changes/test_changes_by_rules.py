"""A change of a CRD that a VersionConversion converts is judged by its rules."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cluster.changes.ruled import DROPPED, RuledScene
from tests.cluster.changes.scene import Scene
from tests.cluster.conversion.rules import RULES
from tests.cluster.conversion.scene import V1
from tests.cluster.conversion.scene import Scene as Converted
from tests.cluster.harness import Admin


@pytest.fixture
async def ruled(scene: Scene, admin: Admin, group: str) -> AsyncIterator[RuledScene]:
    converted = Converted(admin.cluster, group)
    yield RuledScene(converted)
    await scene.admin.clean_up()
    kubectl = admin.cluster.kubectl
    kubectl("delete", "crd", converted.name, "--ignore-not-found", "--timeout=60s", check=False)
    kubectl("delete", "vconv", converted.name, "--ignore-not-found", "--timeout=60s", check=False)


async def test_rules_decide_what_is_lost(scene: Scene, ruled: RuledScene) -> None:
    converted = ruled.converted
    converted.convert(DROPPED)
    converted.ready()
    converted.create("v1", "a", V1)
    await scene.judge("Deny")
    await ruled.until_refused()
    converted.convert(RULES)
    converted.ready()
    await ruled.until_harmless()
    # As was said: the value outlives a write at the version that cannot hold it.
    assert "serverside-applied" in ruled.store("v1alpha1")
    ruled.touch("v1alpha1")
    found: Any = converted.spec("v1", "a")
    assert found["replicas"] == V1["replicas"]


async def test_another_webhook_at_our_path_does_not_convert_by_our_rules(
    scene: Scene, ruled: RuledScene
) -> None:
    converted = ruled.converted
    converted.convert(DROPPED)
    converted.ready()
    converted.create("v1", "a", V1)
    await scene.judge("Deny")
    ours = converted.conversion()["webhook"]["clientConfig"]
    path = f"/convert/{converted.name}"
    assert ours["url"].endswith(path)
    former = {"namespace": "former", "name": "crdkeeper-webhook", "path": path}
    others: list[dict[str, Any]] = [{"service": former}, {"url": f"https://127.0.0.1:1{path}"}]
    for other in others:
        converted.convert_at(**other)
        await ruled.until_harmless()
        # The same rules have been there all the time.
        converted.convert_at(**ours)
        await ruled.until_refused()
