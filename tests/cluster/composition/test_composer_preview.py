"""`crdkeeper compose preview`: what it says is what happens then, and it stores nothing."""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cli.commandline import CommandLine, Done
from tests.cluster.composition.authoring import ROLES
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, pinned, secret
from tests.cluster.harness import each_of, eventually
from tests.controlplane.cluster import Cluster

Json = Any


class Previewer:
    """A user who previews Compositions of a composite API before they are applied."""

    def __init__(self, composing: Composing, shell: CommandLine, folder: Path) -> None:
        self._composing = composing
        self._shell = shell
        self._file = folder / "composition.json"

    async def run(
        self, *resources: Json, options: tuple[str, ...] = (), which: str = "main", **spec: Any
    ) -> Done:
        """Preview a Composition with these resources; etcd's content must stay as it is."""
        document = self._composing.designer.document(which, *resources, **spec)
        self._file.write_text(json.dumps(document, indent=2))
        before = await self._at_rest()
        done = await self._shell.run("compose", "preview", "-f", str(self._file), *options)
        assert await self._versions() == before
        return done

    async def says(self, *resources: Json, code: int, **more: Any) -> Json:
        """The document that it prints."""
        options = ("-o", "json", *more.pop("options", ()))
        done = await self.run(*resources, options=options, **more)
        assert (done.exit_code, done.stderr) == (code, ""), done
        return json.loads(done.stdout)

    async def _at_rest(self) -> Json:
        """The versions, once the composer has written what is due, such as a status."""
        seen: list[Json] = [{}]

        async def same() -> bool:
            seen.append(await self._versions())
            return bool(seen[-1] == seen[-2])

        await eventually(same, every=1.5)
        return seen[-1]

    async def _versions(self) -> Json:
        """The resourceVersions of everything that may change: a write that changes anything changes them."""
        own = self._composing.definition
        paths = (own.objects, CONFIG_MAPS, "/api/v1/namespaces/default/secrets")
        kinds = ("compositions", "compositionrevisions")
        found = {}
        for path in (*paths, *(f"/apis/crdkeeper.dev/v1alpha1/{each}" for each in kinds)):
            listed = (await self._composing.author.get(path))["items"]
            found[path] = {
                each["metadata"]["name"]: (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
                for each in listed
            }
        return found


@pytest.fixture
def previewer(composing: Composing, shell: CommandLine, tmp_path: Path) -> Previewer:
    return Previewer(composing, shell, tmp_path)


def changes(found: Json, name: str = "orders") -> Json:
    """What would become of the objects of a composite, by name, or of its resources."""
    (composite,) = (each for each in found["composites"] if each["name"] == name)
    return {each.get("name") or each["resource"]: each["change"] for each in composite["objects"]}


def fields(found: Json, name: str) -> Json:
    """The fields that would change in an object."""
    for composite in found["composites"]:
        for each in composite["objects"]:
            if each.get("name") == name:
                return {of["path"]: (of.get("before"), of.get("after")) for of in each["fields"]}
    return None


async def test_what_is_previewed_is_what_happens(composing: Composing, previewer: Previewer) -> None:
    first = (
        config_map("settings", engine="${composite.spec.engine}", other="1"),
        config_map("same", text="x"),
        config_map("old", text="x"),
        config_map("kept", Deletion="Orphan", text="x"),
    )
    await composing.compose(*first)
    for name in ("orders", "users"):
        await composing.create(name)
        await composing.ready(name)
    same = await previewer.says(*first, code=0)
    assert (same["isNew"], same["summary"]["objects"]) == (False, {"Unchanged": 8})
    second = (
        config_map("settings", engine="${composite.spec.engine}-2", more="new"),
        config_map("same", text="x"),
        config_map("added", settings="${settings.data.engine}"),
    )
    found = await previewer.says(*second, code=1)
    assert (found["isNew"], found["revision"]) == (True, f"{composing.designer.name('main')}-2")
    assert changes(found) == {
        "orders-settings": "Changed",
        "orders-added": "Created",
        "orders-old": "Deleted",
        "orders-kept": "Released",
    }
    assert fields(found, "orders-settings") == {
        "data.engine": ('"MySQL"', '"MySQL-2"'),
        "data.other": ('"1"', None),
        "data.more": (None, '"new"'),
    }
    assert fields(found, "users-added") == {"data.settings": (None, '"MySQL-2"')}
    assert found["summary"] == {
        "composites": {"Changed": 2},
        "objects": {"Changed": 2, "Created": 2, "Deleted": 2, "Released": 2, "Unchanged": 2},
        "otherRevisions": 0,
    }
    later = config_map("later", text="${added.metadata.annotations['example.com/late']}")
    waiting = changes(await previewer.says(*second, later, code=1))
    assert (waiting["later"], waiting["orders-old"], waiting["orders-added"]) == (
        "Waiting",
        "Held",
        "Created",
    )
    done = await previewer.run(*second, options=("--composite", "default/orders"))
    assert done.exit_code == 1
    assert '      ~ data.engine: "MySQL" -> "MySQL-2"\n' in done.stdout
    assert "users" not in done.stdout
    await composing.compose(*second, number=2)
    await composing.has("orders-settings", engine="MySQL-2", more="new")
    await composing.has("orders-added", settings="MySQL-2")
    await composing.gone("orders-old")
    assert await composing.data("orders-kept") == {"text": "x"}
    await composing.author.delete(f"{CONFIG_MAPS}/orders-kept")
    await composing.author.delete(f"{CONFIG_MAPS}/users-kept")


@pytest.mark.composes("configmaps", "secrets")
async def test_what_the_server_refuses_and_what_is_recreated(
    composing: Composing, previewer: Previewer
) -> None:
    await composing.compose(secret(recreate=True), config_map("first", text="x"))
    await composing.create("orders")
    await composing.ready("orders")
    changed = secret()
    changed["template"]["stringData"]["engine"] = "s3cr3t-value"
    found = await previewer.says(changed, config_map("first", text="x"), code=2)
    (refused,) = found["composites"][0]["objects"]
    assert (refused["change"], refused["resource"]) == ("Refused", "password")
    assert "immutable" in refused["message"]
    done = await previewer.run({**changed, "recreate": True}, config_map("first", text="x"))
    assert (done.exit_code, done.stderr) == (1, "")
    assert "± Secret default/orders: recreated" in done.stdout
    hidden = ("s3cr3t-value", base64.b64encode(b"s3cr3t-value").decode(), base64.b64encode(b"MySQL").decode())
    assert not any(each in done.stdout for each in (*hidden, "MySQL")), done.stdout
    assert "(not shown)" in done.stdout
    # What is copied from it is its value, too, whatever kind of object has the copy.
    copy = config_map(
        "copy", engine="for ${string(password.data.engine)}", secret="${password.metadata.name}"
    )
    done = await previewer.run(secret(), config_map("first", text="y"), copy)
    assert (done.exit_code, done.stderr) == (1, "")
    assert "+ ConfigMap default/orders-copy\n      + data.engine: (not shown)" in done.stdout
    assert 'data.text: "x" -> "y"' in done.stdout
    assert "MySQL" not in done.stdout
    await composing.author.put(
        f"{CONFIG_MAPS}/orders-taken",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orders-taken"}, "data": {"a": "b"}},
    )
    await composing.patch(f"{CONFIG_MAPS}/orders-first", {"data": {"mine": "y"}}, "other")
    # The composer has looked at it once it puts something back.
    await composing.patch(f"{CONFIG_MAPS}/orders-first", {"data": {"text": "drifted"}}, "other")
    await composing.has("orders-first", text="x", mine="y")
    taken = config_map("taken", a="c")
    found = await previewer.says(secret(), config_map("first", text="z", mine="x"), taken, code=2)
    said = {
        each.get("resource"): each["message"]
        for each in found["composites"][0]["objects"]
        if "message" in each
    }
    assert "exists already" in said["taken"]
    assert "data.mine belongs to other" in said["first"]
    await composing.author.delete(f"{CONFIG_MAPS}/orders-taken")


async def test_errors_are_those_of_the_condition_with_the_line(
    composing: Composing, previewer: Previewer
) -> None:
    bad = config_map("first", text="${composite.spec.engin}")
    done = await previewer.run(bad)
    assert (done.exit_code, done.stdout) == (2, "")
    await composing.designer.put("main", bad)
    await composing.designer.says("main", "Valid", "False", "Invalid", "undefined field", judged="Failed")
    assert "composition.json:" in done.stderr
    assert "undefined field 'engin'" in done.stderr
    missing = {
        **config_map("first"),
        "template": {"apiVersion": "no.example.com/v1", "kind": "None", "metadata": {"name": "x"}},
    }
    done = await previewer.run(missing)
    assert done.exit_code == 2
    assert "None of no.example.com/v1 is not served" in done.stderr
    await composing.designer.put("main", config_map("first"))
    await composing.designer.ready("main")


async def test_only_composites_that_would_run_by_it_are_tried(
    composing: Composing, previewer: Previewer
) -> None:
    await composing.compose(config_map("first", text="a"))
    await composing.create("orders")
    await composing.create("pinned", crdkeeper={"compositionUpdatePolicy": "Manual"})
    await composing.create("paused", {"annotations": {"crdkeeper.dev/paused": "true"}, "labels": {"a": "b"}})
    # What the composer still had to write, a preview would seem to have written.
    await composing.until("pinned", lambda found: bool(pinned(found)))
    for name in ("orders", "pinned"):
        await composing.ready(name)
    found = await previewer.says(config_map("first", text="b"), code=1)
    assert found["summary"] == {
        "composites": {"Changed": 1, "Skipped": 1},
        "objects": {"Changed": 1},
        "otherRevisions": 1,
    }
    found = await previewer.says(config_map("first", text="b"), code=0, options=("-l", "a=b"))
    assert [each["name"] for each in found["composites"]] == ["paused"]
    # A second Composition that nobody names: those that have the only one would have none.
    found = await previewer.says(config_map("second"), code=2, which="second")
    assert changes(found) == {"": "Refused"}
    assert "compositionRef" in found["composites"][0]["objects"][0]["message"]
    await composing.patch(
        composing.path("paused"), {"metadata": {"annotations": {"crdkeeper.dev/paused": None}}}
    )


async def test_who_may_not_change_the_objects_is_told_so(
    composing: Composing,
    plane: Cluster,
    shells: Callable[[Path], CommandLine],
    tmp_path: Path,
) -> None:
    await composing.compose(config_map("first", text="a"))
    await composing.create("orders")
    await composing.ready("orders")
    author, name = composing.author, f"viewer-{composing.definition.group.replace('.', '-')}"
    account = f"/api/v1/namespaces/default/serviceaccounts/{name}"
    await author.put(account, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    rbac = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    await author.put(f"{ROLES}/{name}", role)
    binding = f"{ROLES.replace('clusterroles', 'clusterrolebindings')}/{name}"
    await author.put(
        binding,
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        },
    )
    shell = shells(plane.service_account_kubeconfig("default", name))
    try:
        previewer = Previewer(composing, shell, tmp_path)
        found = await previewer.says(config_map("first", text="b"), code=2)
        (said,) = found["composites"][0]["objects"]
        assert said["change"] == "Unknown"
        verbs = "[get, list, create, patch, delete]"
        assert (
            f'You need the rule {{apiGroups: [""], resources: [configmaps], verbs: {verbs}}}'
            in said["message"]
        )
    finally:
        for path in (binding, f"{ROLES}/{name}", account):
            await author.delete(path)


async def test_many_composites_are_previewed(composing: Composing, previewer: Previewer) -> None:
    number = int(os.environ.get("CRDKEEPER_PREVIEWED", "60"))
    await composing.compose(config_map("first", text="a"))
    names = [f"c{at}" for at in range(number)]
    await each_of(names, composing.create)
    for name in names:
        await composing.ready(name)
    found = await previewer.says(config_map("first", text="b"), code=1)
    assert found["summary"]["composites"] == {"Changed": number}
    found = await previewer.says(config_map("first", text="b"), code=1, options=("--limit", "5"))
    assert found["summary"]["objects"] == {"Changed": 5}
