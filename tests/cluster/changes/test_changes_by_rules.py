"""A change of a CRD that a VersionConversion converts is judged by its rules."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cluster.changes.scene import Scene
from tests.cluster.conversion.rules import RULES, crontab_definition
from tests.cluster.conversion.scene import V1
from tests.cluster.conversion.scene import Scene as Converted
from tests.cluster.harness import Admin, eventually

DROPPED = {
    **RULES,
    "v1alpha1": [
        {"hub": each["hub"], "drop": True} if each.get("hub") == "spec.replicas" else each
        for each in RULES["v1alpha1"]
    ],
}


class RuledScene:
    """CronTabs that are converted by rules, whose changes are judged."""

    def __init__(self, converted: Converted, judged: Scene) -> None:
        self.converted = converted
        self.judged = judged

    def store(self, version: str, *flags: str) -> str:
        """What `kubectl apply` says when another version becomes the stored one."""
        definition = crontab_definition(self.converted.group, storage=version, client_config={})
        definition["spec"].pop("conversion")  # the operator has written it
        text = json.dumps(definition)
        return self.judged.kubectl("apply", "--server-side", *flags, "-f", "-", input=text, check=False)

    async def until_said(self, text: str, *absent: str) -> str:
        """What a dry run of storing v1alpha1 says, once it has that text, and none of the others."""
        said = ""

        async def look() -> bool:
            nonlocal said
            said = self.store("v1alpha1", "--dry-run=server")
            return text in said and not any(each in said for each in absent)

        await eventually(look, otherwise=lambda: said)
        return said

    def touch(self, version: str) -> None:
        """Write the object at that version, unchanged but for a label."""
        resource = f"crontabs.{version}.{self.converted.group}"
        self.judged.kubectl("label", resource, "a", f"written-at={version}", "--overwrite")


@pytest.fixture
async def ruled(scene: Scene, admin: Admin, group: str) -> AsyncIterator[RuledScene]:
    converted = Converted(admin.cluster, group)
    yield RuledScene(converted, scene)
    await scene.admin.clean_up()
    kubectl = admin.cluster.kubectl
    kubectl("delete", "crd", converted.name, "--ignore-not-found", "--timeout=60s", check=False)
    kubectl("delete", "vconv", converted.name, "--ignore-not-found", "--timeout=60s", check=False)


async def test_rules_decide_what_is_lost(ruled: RuledScene) -> None:
    converted = ruled.converted
    converted.convert(DROPPED)
    converted.ready()
    converted.create("v1", "a", V1)
    await ruled.judged.judge("Deny")
    lost = "1 of 1 CronTab objects would lose spec.replicas with the next write"
    said = await ruled.until_said(f"refuses it (spec.changes): {lost}")
    assert "serverside-applied" not in said
    converted.convert(RULES)
    converted.ready()
    # On a busy machine, there may be no time for the rules or the object: that proves nothing.
    said = await ruled.until_said("storage-version", lost, "is not known", "no live object was examined")
    assert "refuses it" not in said
    # As was said: the value outlives a write at the version that cannot hold it.
    assert "serverside-applied" in ruled.store("v1alpha1")
    ruled.touch("v1alpha1")
    found: Any = converted.spec("v1", "a")
    assert found["replicas"] == V1["replicas"]
