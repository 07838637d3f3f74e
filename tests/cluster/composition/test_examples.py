"""The examples: rendered until nothing waits, with the API server's schemas, and created there."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cli.commandline import CommandLine
from tests.controlplane.cluster import Cluster

Json = Any

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = ("definition", "composition", "composites")
GROUPS = ("api/v1", *(f"apis/{each}" for each in ("apps/v1", "autoscaling/v2", "batch/v1", "policy/v1")))
NETWORKING = ("apis/networking.k8s.io/v1", "apis/rbac.authorization.k8s.io/v1")
READY: dict[str, Json] = {
    "Deployment": {
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2),
        "observedGeneration": 1,
        "conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    },
    "StatefulSet": {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
}
"""The status that controllers and kubelets would write."""
MOST_ROUNDS = 5


@dataclass(frozen=True)
class Expected:
    """What an example becomes."""

    objects: frozenset[str]
    composite: str
    status: Json
    """Of this composite."""


EXPECTED = {
    "web-application": Expected(
        frozenset(
            (
                *(f"{kind}/{name}" for kind in ("Deployment", "Service") for name in ("shop", "search")),
                *(f"PodDisruptionBudget/{name}" for name in ("shop", "search")),
                "HorizontalPodAutoscaler/search",
            )
        ),
        "shop",
        {
            "replicas": 2,
            "selector": "app.kubernetes.io/instance=shop",
            "url": "http://shop.default.svc",
        },
    ),
    "tenant": Expected(
        frozenset(
            (
                "Namespace/tenant-payments",
                "ResourceQuota/tenant",
                "NetworkPolicy/tenant",
                "RoleBinding/tenant-ada",
                "RoleBinding/tenant-grace",
            )
        ),
        "payments",
        {"namespace": "tenant-payments"},
    ),
    "database": Expected(
        frozenset(
            (
                "Service/orders-db",
                "StatefulSet/orders-db",
                "PersistentVolumeClaim/orders-dumps",
                "CronJob/orders-backup",
            )
        ),
        "orders",
        {"address": "orders-db.default.svc:5432"},
    ),
}


@pytest.fixture(scope="module")
def schemas(composite_kinds: Cluster, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options with the API server's schemas of what the examples compose."""
    folder, options = tmp_path_factory.mktemp("schemas"), []
    for each in (*GROUPS, *NETWORKING):
        file = folder / f"{each.replace('/', '-')}.json"
        file.write_text(composite_kinds.kubectl("get", "--raw", f"/openapi/v3/{each}"))
        options += ["--schemas", str(file)]
    return options


@pytest.fixture
def made(composite_kinds: Cluster) -> Iterator[list[str]]:
    """Manifests of what a test creates; all of it is deleted."""
    made: list[str] = []
    yield made
    for each in reversed(made):
        composite_kinds.kubectl(
            "delete", "--ignore-not-found", "--wait=false", "--filename=-", input=each, check=False
        )


def test_there_is_nothing_else() -> None:
    assert {each.name for each in EXAMPLES.iterdir() if each.is_dir()} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
async def test_examples(
    composite_kinds: Cluster,
    shell: CommandLine,
    schemas: list[str],
    made: list[str],
    tmp_path: Path,
    name: str,
) -> None:
    expected, kubectl = EXPECTED[name], composite_kinds.kubectl

    manifests = {each: (EXAMPLES / name / f"{each}.yaml").read_text() for each in FILES}

    def apply(manifest: str) -> Json:
        made.append(manifest)
        return json.loads(kubectl("apply", "--server-side", "-o", "json", "--filename=-", input=manifest))

    # The API server takes the definition, the Composition, and the composites.
    apply(manifests["definition"])
    apply(manifests["composition"])
    definition, composition = (str(EXAMPLES / name / f"{each}.yaml") for each in FILES[:2])
    printed = await shell.run("compose", "crd", "-f", definition)
    assert printed.exit_code == 0
    crd = apply(printed.stdout)
    names = crd["spec"]["names"]
    kubectl.wait_established(f"crd/{crd['metadata']['name']}")
    apply(manifests["composites"])
    live = tmp_path / "live.json"
    live.write_text(kubectl("get", names["plural"], "--all-namespaces", "-o", "json"))

    observed, exists = tmp_path / "observed.json", dict[str, Json]()
    files = [option for each in (definition, composition, str(live)) for option in ("-f", each)]
    for _ in range(MOST_ROUNDS):
        observed.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*exists.values()]}))
        rendered = await shell.run(
            "compose", "render", *files, *schemas, "--observed", str(observed), "--status", "-o", "json"
        )
        assert rendered.exit_code == 0, rendered.stderr
        assert "not checked" not in rendered.stderr
        items, before = json.loads(rendered.stdout)["items"], set(exists)
        for each in (item for item in items if item["kind"] != names["kind"]):
            stored = apply(json.dumps(each))
            stored["status"] = {**stored.get("status", {}), **READY.get(each["kind"], {})}
            exists[f"{each['kind']}/{each['metadata']['name']}"] = stored
        waits = any(each in rendered.stderr for each in (": waiting: ", ": not ready: "))
        if not waits and exists.keys() == before:
            break
    else:
        pytest.fail(f"still waiting: {rendered.stderr}")
    assert exists.keys() == expected.objects
    (status,) = [
        each["status"]
        for each in items
        if (each["kind"], each["metadata"]["name"]) == (names["kind"], expected.composite)
    ]
    assert {key: status[key] for key in expected.status} == expected.status
