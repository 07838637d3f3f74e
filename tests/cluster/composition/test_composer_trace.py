"""`crdkeeper compose trace`: the tree of live composites, as different people see it."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.cluster.resources.discovery import list_resources
from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.cli.commandline import CommandLine
from tests.cluster.composition.authoring import ROLES, Definition
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map
from tests.cluster.composition.designing import Designer
from tests.cluster.harness import eventually
from tests.controlplane.cluster import Cluster
from tests.unit.cli.hostile import ALL, assert_harmless

Json = Any
RESOURCES = (
    config_map("late", first="${first.metadata.annotations['example.com/late']}"),
    config_map("first", engine="${composite.spec.engine}"),
    config_map("off", IncludeWhen=["${composite.spec.?enabled.orValue(false)}"]),
)


async def traced(shell: CommandLine, *args: str, code: int) -> Json:
    """The composite of `crdkeeper compose trace -o json`."""
    done = await shell.run("compose", "trace", *args, "-o", "json")
    assert (done.exit_code, done.stderr) == (code, ""), done
    return json.loads(done.stdout)["composite"]


async def of_its_kind(composing: Composing) -> list[str]:
    """The resources of its kind that the API server lists to its clients, some time after it serves them."""
    found = await list_resources(composing.author.client)
    return [str(each) for each in found if each.kind == composing.definition.kind]


async def until_listed(composing: Composing) -> None:
    """Wait until its resource is."""

    async def look() -> bool:
        return composing.definition.name in await of_its_kind(composing)

    await eventually(look, otherwise=lambda: f"{composing.definition.name} is not listed")


async def alone_of_its_kind(composing: Composing) -> None:
    """Wait until there is no other, such as of an earlier test: then the kind names one resource."""

    async def alone() -> bool:
        return await of_its_kind(composing) == [composing.definition.name]

    await eventually(alone, otherwise=lambda: "resources of other tests stay")


def states(found: Json) -> Json:
    """Resources with their states, and those of their objects."""
    return {
        each["name"]: [each["state"], *(of["state"] for of in each["objects"])] for each in found["resources"]
    }


async def test_the_tree_shows_what_is_ready_and_why_the_rest_is_not(
    composing: Composing, shell: CommandLine
) -> None:
    await composing.compose(*RESOURCES)
    await composing.create("orders")
    await composing.says("orders", "Ready", "False", "Creating", "late: waits for first")
    definition, revision = composing.definition, f"{composing.designer.name('main')}-1"
    await alone_of_its_kind(composing)
    for spelled in (definition.kind, definition.name, f"{definition.kind.lower()}.{definition.group}"):
        found = await traced(shell, spelled, "orders", code=1)
        assert states(found) == {
            "first": ["Rendered", "Ready"],
            "off": ["Excluded"],
            "late": ["Waiting"],
        }
    assert (found["revision"], found["composition"]) == (revision, composing.designer.name("main"))
    done = await shell.run("compose", "trace", f"{definition.name}/orders")
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout.startswith(f"{definition.kind} default/orders\n│ Composition main-")
    assert "\n│ Synced: True, ReconcileSuccess: All objects" in done.stdout
    assert "\n├─ first\n│  └─ ConfigMap default/orders-first: ready\n├─ off: excluded: " in done.stdout
    assert "\n└─ late: waiting: waits for first" in done.stdout
    await composing.patch(
        f"{CONFIG_MAPS}/orders-first", {"metadata": {"annotations": {"example.com/late": "now"}}}
    )
    await composing.ready("orders")
    done = await shell.run("compose", "trace", definition.name, "orders", "-o", "yaml")
    assert (done.exit_code, yaml.safe_load(done.stdout)["kind"]) == (0, "CompositeTrace")
    done = await shell.run("compose", "trace", definition.name, "orders", "-o", "dot")
    assert done.stdout.startswith("digraph composite {")
    assert 'label="ConfigMap default/orders-late: ready"' in done.stdout


async def test_what_a_deletion_waits_for_is_told_with_its_finalizer(
    composing: Composing, shell: CommandLine
) -> None:
    await composing.compose(config_map("first"), config_map("second", first="${first.metadata.name}"))
    await composing.create("orders")
    await composing.ready("orders")
    path = f"{CONFIG_MAPS}/orders-second"
    await composing.patch(path, {"metadata": {"finalizers": ["example.com/backup"]}})
    await composing.delete("orders")
    await composing.until("orders", lambda found: "example.com/backup" in json.dumps(found["status"]))
    found = await traced(shell, composing.definition.name, "orders", code=1)
    assert states(found) == {"first": ["Listed", "ToDelete"], "second": ["Listed", "Deleting"]}
    (second,) = found["resources"][1]["objects"]
    assert second["finalizers"] == ["example.com/backup"]
    since = (await composing.author.get(path))["metadata"]["deletionTimestamp"]
    assert second["deletionTimestamp"] == since
    assert found["finalizers"] == ["crdkeeper.dev/objects"]
    done = await shell.run("compose", "trace", composing.definition.name, "orders")
    said = f"it is being deleted since {since}, and waits for its finalizers: example.com/backup"
    assert f"\n   └─ ConfigMap default/orders-second: {said}\n" in done.stdout
    await composing.patch(path, {"metadata": {"finalizers": None}})
    await composing.author.gone(composing.path("orders"))
    done = await shell.run("compose", "trace", composing.definition.name, "orders")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there is no Thing default/orders" in done.stderr


async def test_a_composite_in_a_composite_is_followed(composing: Composing, shell: CommandLine) -> None:
    inner = Composing(composing.author, composing.definition.group)
    inner.definition = Definition(composing.definition.group, "inner")
    inner.designer = Designer(composing.author, inner.definition)
    await inner.define()
    await inner.compose(config_map("settings", called="of-inner"), which="inner")
    template = {
        "apiVersion": f"{inner.definition.group}/v1",
        "kind": inner.definition.kind,
        "metadata": {"name": "${composite.metadata.name}"},
        "spec": {"engine": "MySQL"},
    }
    await composing.compose({"name": "inner", "template": template})
    await composing.create("orders")
    await composing.ready("orders")
    found = await traced(shell, composing.definition.name, "orders", code=0)
    below = found["resources"][0]["objects"][0]["composite"]
    assert below["revision"] == f"{inner.designer.name('inner')}-1"
    assert below["resources"][0]["objects"][0]["name"] == "of-inner"
    done = await shell.run("compose", "trace", composing.definition.name, "orders")
    assert done.stdout.splitlines()[-1].endswith("└─ ConfigMap default/of-inner: ready")
    await composing.delete("orders")
    await composing.author.gone(composing.path("orders"))
    await inner.clean_up()


async def test_what_a_person_may_not_read_is_unknown_with_the_rule(
    composing: Composing, plane: Cluster, shells: Callable[[Path], CommandLine]
) -> None:
    await composing.compose(config_map("first"), config_map("second"))
    await composing.create("orders")
    await composing.ready("orders")
    client, group = composing.author.client, composing.definition.group
    name = f"reader-{group.replace('.', '-')}"
    await composing.author.put(
        f"/api/v1/namespaces/default/serviceaccounts/{name}",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
    )
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await composing.author.put(f"{ROLES}/{name}", role)
    bindings = ROLES.replace("clusterroles", "clusterrolebindings")
    await composing.author.put(f"{bindings}/{name}", binding)
    shell = shells(plane.service_account_kubeconfig("default", name))
    try:
        done = await shell.run("compose", "trace", composing.definition.name, "orders")
        assert done.exit_code == 2
        assert f'{{apiGroups: ["{group}"], resources: [things], verbs: [get]}}' in done.stderr
        own = {"apiGroups": [group], "resources": ["things"], "verbs": ["get"]}
        await client.request("PATCH", f"{ROLES}/{name}", {"rules": [own]}, content_type=MERGE_PATCH)
        found: Json = None
        for _ in range(50):
            done = await shell.run("compose", "trace", composing.definition.name, "orders", "-o", "json")
            if done.stdout:
                found = json.loads(done.stdout)["composite"]
                break
        assert done.exit_code == 2
        assert states(found) == {"first": ["Listed", "Unknown"], "second": ["Listed", "Unknown"]}
        said = found["resources"][0]["objects"][0]["message"]
        assert '{apiGroups: [""], resources: [configmaps], verbs: [get, list]}' in said
        assert "resources: [compositionrevisions], verbs: [get]" in found["remarks"][0]
    finally:
        await composing.author.delete(f"{bindings}/{name}")
        await composing.author.delete(f"{ROLES}/{name}")
        await composing.author.delete(f"/api/v1/namespaces/default/serviceaccounts/{name}")


async def forge(composing: Composing, name: str, status: Json) -> None:
    """Write a status as a tenant could."""
    client = composing.author.client
    path = f"{composing.path(name)}/status"
    await client.request("PATCH", path, {"status": status}, content_type=MERGE_PATCH)


@pytest.mark.parametrize("levels", [3, 14])
async def test_forged_chains_and_circles_of_composites_end(
    composing: Composing, shell: CommandLine, levels: int
) -> None:
    """Each composite lists the next one as its object, and the last one the first."""
    kind, version = composing.definition.kind, f"{composing.definition.group}/v1"
    made = [await composing.create(f"c{at}") for at in range(levels)]
    for at in range(levels):
        after = (at + 1) % levels
        owner = {"apiVersion": version, "kind": kind, "name": f"c{at}", "uid": made[at]["metadata"]["uid"]}
        await composing.patch(
            composing.path(f"c{after}"),
            {"metadata": {"ownerReferences": [{**owner, "controller": True}]}},
        )
        listed = {"apiVersion": version, "kind": kind, "namespace": "default", "name": f"c{after}"}
        nothing = {
            "apiVersion": "nothing.example.com/v1",
            "kind": "None",
            "namespace": "default",
            "name": "x",
        }
        await forge(
            composing,
            f"c{at}",
            {
                "crdkeeper": {
                    "revision": f"gone{ALL[:100]}",
                    "resources": [
                        {"name": f"next{ALL}", "object": listed, "message": "a"},
                        {"name": "none", "object": nothing},
                    ],
                },
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "False",
                        "reason": "Forged",
                        "message": ALL,
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
            },
        )
    await until_listed(composing)
    done = await shell.run("compose", "trace", composing.definition.name, "c0")
    assert done.exit_code == 2, done.stderr
    assert_harmless(done.stdout)
    followed = "It is a composite that is not followed: trace it by itself" not in done.stdout
    assert followed == (levels == 3)
    assert "Thing default/c2: " in done.stdout
    assert "Thing default/c11" not in done.stdout
    done = await shell.run("compose", "trace", composing.definition.name, "c0", "-o", "dot")
    assert_harmless(done.stdout)


async def test_what_is_no_composite_is_refused(shell: CommandLine, composing: Composing) -> None:
    done = await shell.run("compose", "trace", "service", "kubernetes")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no composite" in done.stderr
    done = await shell.run("compose", "trace", "nosuchthings", "x")
    assert done.exit_code == 2
    assert "no resource nosuchthings" in done.stderr
    await composing.create("alone")
    await until_listed(composing)
    found = await traced(shell, composing.definition.name, "alone", code=1)
    assert (found["resources"], found["conditions"]) == ([], [])


async def test_a_composite_with_many_objects(composing: Composing, shell: CommandLine) -> None:
    number = int(os.environ.get("CRDKEEPER_COMPOSED_OBJECTS", "200"))
    each = [{"at": "${composite.spec.names}"}]
    await composing.compose(config_map("item", called="${composite.metadata.name}-${at}", ForEach=each))
    await composing.create("many", names=[f"n{at}" for at in range(number)])
    await composing.says("many", "Ready", "True", "Available", seconds=120)
    found = await traced(shell, composing.definition.name, "many", code=0)
    assert [each["state"] for each in found["resources"][0]["objects"]] == ["Ready"] * number
    await composing.delete("many")
    await composing.author.gone(composing.path("many"), seconds=240)
