"""`crdkeeper rehearse` of a CRD that rules convert, or another webhook, with just the documented rights."""

from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.cluster.resources.access import Right
from tests.cluster.cli.commandline import CommandLine, Done
from tests.cluster.conversion.rules import RULES, crontab_definition
from tests.cluster.conversion.scene import V1, Scene
from tests.cluster.harness import Admin
from tests.cluster.harness.accounts import Account, documented_rights, limited

UNKNOWN = "converts, and what it makes of objects is not known"
OPEN = "what is read at v1beta1, v1alpha1 was not rehearsed; give its rules with --rules"


class Rehearser:
    """Who may do what the documentation says, in a cluster with an object and rules that are served."""

    def __init__(self, scene: Scene, account: Account, shell: CommandLine, file: Path) -> None:
        self.scene = scene
        self._account = account
        self._shell = shell
        self._file = file

    async def grant(self, *, but: str = "") -> None:
        """Have all rights, but for those on this resource."""
        names = {"example.com": self.scene.group, "widgets": "crontabs"}
        rights = [
            each
            for comment in ("crdkeeper rehearse", "rules of the cluster")
            for each in documented_rights("rehearsal.md", comment, names)
        ]
        assert Right("get", self.scene.group, "crontabs") in rights
        await self._account.grant(rights, but=[each for each in rights if each.resource == but])

    def definition(self, **conversion: Any) -> dict[str, Any]:
        """The CRD with this conversion, or without a word about it."""
        # A copy, because all CronTabs share the schemas of their versions.
        found: dict[str, Any] = deepcopy(crontab_definition(self.scene.group, storage="v1", client_config={}))
        found["spec"]["conversion"] = conversion
        if not conversion:
            del found["spec"]["conversion"]
        return found

    async def rehearse(self, definition: dict[str, Any]) -> Done:
        self._file.write_text(yaml.safe_dump(definition), encoding="utf-8")
        return await self._shell.run("rehearse", "-f", str(self._file))

    async def safe(self, definition: dict[str, Any]) -> str:
        """What is said of a CRD that does no harm."""
        done = await self.rehearse(definition)
        assert done.exit_code == 0, done
        return done.stdout

    async def open(self, definition: dict[str, Any]) -> str:
        """What is said of a CRD with conversions that nobody knows."""
        done = await self.rehearse(definition)
        assert done.exit_code == 2, done
        return done.stdout


@pytest.fixture
async def rehearser(
    scene: Scene, admin: Admin, shells: Callable[[Path], CommandLine], tmp_path: Path
) -> AsyncIterator[Rehearser]:
    scene.create("v1", "mine", V1)
    scene.convert(RULES)
    scene.ready()
    async with limited(admin, f"rehearser-{scene.group.partition('.')[0]}") as account:
        made = Rehearser(scene, account, shells(account.kubeconfig), tmp_path / "crd.yaml")
        await made.grant()
        yield made


async def test_the_rules_that_serve_are_tried_on_the_new_schemas(rehearser: Rehearser) -> None:
    definition = rehearser.definition()
    await rehearser.safe(definition)
    spec = definition["spec"]["versions"][2]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["extra"] = {"type": "string"}
    changed = await rehearser.rehearse(definition)
    assert changed.exit_code == 2
    assert "the cluster's VersionConversion: spec.spokes[1].version: spec.extra" in changed.stderr


async def test_newer_rules_that_do_not_serve_are_passed_over(rehearser: Rehearser) -> None:
    scene, definition = rehearser.scene, rehearser.definition()
    scene.convert({**RULES, "v1alpha1": RULES["v1alpha1"][:1]})
    scene.wait("Ready", "False", "InvalidRules")
    await rehearser.safe(definition)
    await rehearser.grant(but="configmaps")
    said = await rehearser.open(definition)
    assert f"{UNKNOWN}: {OPEN} (the newest rules of the VersionConversion are not served, and " in said
    assert f" serves cannot be read from the ConfigMap crdkeeper-system/{scene.name}: 403 Forbidden:" in said


async def test_who_may_not_read_the_rules_is_told_so(rehearser: Rehearser) -> None:
    await rehearser.grant(but="versionconversions")
    said = await rehearser.open(rehearser.definition())
    assert f"{UNKNOWN}: {OPEN} (the VersionConversion cannot be read: 403 Forbidden: " in said


async def test_the_rules_say_nothing_about_another_webhook(rehearser: Rehearser) -> None:
    scene, definition = rehearser.scene, rehearser.definition()
    ours = {key: each for key, each in scene.conversion()["webhook"].items() if key == "clientConfig"}
    url, path = ours["clientConfig"]["url"], f"/convert/{scene.name}"
    assert url.endswith(path)
    former = {"namespace": "former", "name": "crdkeeper-webhook", "path": path}
    others: dict[str, dict[str, Any]] = {
        f"Service former/crdkeeper-webhook:443{path}": {"service": former},
        f"https://127.0.0.1:1{path}": {"url": f"https://127.0.0.1:1{path}"},
    }
    for described, other in others.items():
        elsewhere = f"those of the VersionConversion are served by {url}"
        scene.convert_at(**other)
        said = await rehearser.open(definition)
        assert f"{described} {UNKNOWN}: {OPEN} ({elsewhere})" in said
        # The new CRD names ours: then it is converted by our rules, and today by others.
        named = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": url}}
        said = await rehearser.safe(rehearser.definition(strategy="Webhook", webhook=named))
        assert f"{described} converts today" in said
        # And the other way round.
        scene.convert_at(**ours["clientConfig"])
        await rehearser.safe(definition)
        said = await rehearser.open(
            rehearser.definition(strategy="Webhook", webhook=named | {"clientConfig": other})
        )
        assert f"{described} {UNKNOWN}: {OPEN} ({elsewhere})" in said


async def test_the_rules_say_nothing_about_the_strategy_none(rehearser: Rehearser) -> None:
    done = await rehearser.rehearse(rehearser.definition(strategy="None"))
    assert done.exit_code == 1, done
    assert "ConvertedDifferently" in done.stdout
    assert "spec.hostPort (v1alpha1): 1 object" in done.stdout
