"""APIs of kro and of Crossplane, imported, applied as printed, and composed by the composer's own account."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from crdkeeper.cli import main
from tests.cluster.composition.authoring import Author, Definition, condition
from tests.cluster.composition.composing import CONFIG_MAPS, Composing, all_of, rights_on, run_pods
from tests.cluster.composition.designing import COMPOSITIONS, REVISIONS
from tests.cluster.composition.foreign import BUCKETS, ROSTERS, SHOPS, STORES, TENANTS, documents
from tests.cluster.harness import eventually
from tests.controlplane.cluster import Cluster

Json = Any
Import = Callable[[str], AbstractAsyncContextManager[list[str]]]
APPS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = "/api/v1/namespaces/default/services"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
NAMESPACES = "/api/v1/namespaces"
POLICIES = "/apis/networking.k8s.io/v1/namespaces"


class Composites(Composing):
    """The composites of an imported API; all are deleted at the end."""

    def __init__(self, author: Author, group: str, which: str, version: str, *, namespaced: bool) -> None:
        super().__init__(author, group)
        self.definition = Definition(group, which)
        place = "/namespaces/default" if namespaced else ""
        self.api_version = f"{group}/{version}"
        self.definition.objects = f"/apis/{self.api_version}{place}/{self.definition.plural}"

    async def apply(self, called: str, /, **spec: Any) -> None:
        """Create or change a composite, as soon as its API is served."""
        metadata = {"name": called}
        value = {
            "apiVersion": self.api_version,
            "kind": self.definition.kind,
            "metadata": metadata,
            "spec": spec,
        }

        async def served() -> bool:
            return await self.author.get(f"{self.definition.objects}?limit=1") is not None

        await eventually(served)
        await self.author.put(self.path(called), value)

    async def remove(self, name: str) -> None:
        """Delete a composite, and wait until it is gone."""
        await self.delete(name)
        await self.author.gone(self.path(name))


@pytest.fixture
def imported(author: Author, plane: Cluster, group: str, tmp_path: Path) -> Import:
    """Imports and applies; gives what is left to decide. All is removed, also after a failure."""

    @asynccontextmanager
    async def run(text: str) -> AsyncIterator[list[str]]:
        file = tmp_path / "foreign.yaml"
        file.write_text(documents(text, group))
        result = CliRunner().invoke(main, ["compose", "import", str(file)])
        assert result.exit_code in (0, 1), result.stderr
        plane.kubectl("apply", "--server-side", "--filename=-", input=result.stdout)
        names = [
            each["metadata"]["name"]
            for each in yaml.safe_load_all(result.stdout)
            if each["kind"] == "Composition"
        ]
        last: list[Json] = []

        async def ready() -> bool:
            last[:] = [await author.get(f"{COMPOSITIONS}/{each}") for each in names]
            return all(condition(each, "Ready")[0] == "True" for each in last)

        try:
            await eventually(ready, otherwise=lambda: f"{[each['status'] for each in last]}")
            yield [
                each.partition(": decide: ")[2] for each in result.stderr.splitlines() if ": decide: " in each
            ]
        finally:
            for each in names:
                await author.delete(f"{COMPOSITIONS}/{each}")
            for each in (await author.get(REVISIONS))["items"]:
                if each["spec"]["compositionRef"]["name"] in names:
                    await author.delete(f"{REVISIONS}/{each['metadata']['name']}")

    return run


async def test_a_web_application_of_kro(author: Author, group: str, imported: Import) -> None:
    objects = all_of("", "configmaps", "services"), all_of("apps", "deployments")
    async with (
        rights_on(
            author, f"compose-{group}", all_of(group), *objects, all_of("networking.k8s.io", "ingresses")
        ),
        imported(SHOPS) as decide,
    ):
        (types,) = decide
        assert "the types of deploymentConditions, availableReplicas, host from the schemas" in types
        shops = Composites(author, group, "shop", "v1alpha1", namespaced=True)
        columns = (await author.get(shops.definition.crd))["spec"]["versions"][0]["additionalPrinterColumns"]
        names = [each["name"] for each in columns]
        assert names == ["Available", "AGE", "IMAGE", "Ready", "Synced", "Composition"]
        name = group.partition(".")[0][:30].strip("-")
        await shops.apply("shop", name=name)
        await shops.says("shop", "Ready", "False", "Creating", "deployment: ")
        assert await author.get(f"{SERVICES}/{name}") is None  # it refers to what has a readyWhen

        async def run() -> bool:
            await run_pods(shops, f"app={name}")
            return await author.get(f"{SERVICES}/{name}") is not None

        await eventually(run)
        status = (await shops.ready("shop"))["status"]
        assert (status["availableReplicas"], status["address"]) == (2, f"{name}.default:8080")
        assert {each["type"] for each in status["deploymentConditions"]} >= {"Available", "Progressing"}
        assert "host" not in status
        await shops.has(f"{name}-config", theme="dark")
        (container,) = (await author.get(f"{APPS}/{name}"))["spec"]["template"]["spec"]["containers"]
        assert {each["name"]: each["value"] for each in container["env"]} == {"THEME": "dark", "PORT": "8080"}
        assert container["resources"] == {"limits": {"cpu": "100m", "memory": "128Mi"}}
        assert container["ports"][0]["containerPort"] == 8080
        service = (await author.get(f"{SERVICES}/{name}"))["spec"]
        assert (service["selector"], service["ports"][0]["targetPort"]) == ({"app": name}, 8080)
        assert await author.get(f"{INGRESSES}/{name}") is None

        await shops.apply("shop", name=name, ingress={"enabled": True}, settings={"theme": "light"})
        await shops.has(f"{name}-config", theme="light")

        async def follows() -> bool:
            await run_pods(shops, f"app={name}")
            found = await author.get(shops.path("shop"))
            return bool(found["status"].get("host") == f"{name}.example.org")

        await eventually(follows)
        await eventually(run)
        await shops.ready("shop")
        (container,) = (await author.get(f"{APPS}/{name}"))["spec"]["template"]["spec"]["containers"]
        assert container["env"][0] == {"name": "THEME", "value": "light"}
        annotations = (await author.get(f"{INGRESSES}/{name}"))["metadata"]["annotations"]
        assert (
            annotations.items()
            >= {
                "example.org/listen": '[{"HTTP": 80}]',
                "example.org/class": "plain",
            }.items()
        )

        # What is switched off goes, with what refers to it.
        await shops.apply("shop", name=name, ingress={"enabled": True}, service={"enabled": False})
        for each in (INGRESSES, SERVICES):
            await author.gone(f"{each}/{name}")
        await shops.until("shop", lambda found: not {"host", "address"} & found["status"].keys())
        await shops.remove("shop")
        for path in (f"{CONFIG_MAPS}/{name}-config", f"{APPS}/{name}"):
            assert await author.get(path) is None


async def test_types_functions_and_lists_of_kro(author: Author, group: str, imported: Import) -> None:
    objects = all_of("", "configmaps"), all_of("batch", "jobs")
    name = group.partition(".")[0][:30].strip("-")
    shared = f"{CONFIG_MAPS}/{name}-zone"
    async with (
        rights_on(author, f"compose-{group}", all_of(group), *objects),
        imported(ROSTERS) as decide,
    ):
        (types,) = decide
        assert "the types of regions, finished from the schemas" in types
        rosters = Composites(author, group, "roster", "v1alpha1", namespaced=True)
        lead = {"title": "lead", "levels": [1, 2]}
        members = [{"name": "Ada", "role": lead}, {"name": "Alan", "role": {"title": "clerk"}}]
        teams = [{"name": "one", "members": members}, {"name": "two", "members": members[1:]}]
        await rosters.apply(name, teams=teams, shared=f"{name}-zone")
        await rosters.says(name, "Ready", "False", "Creating", f"{name}-zone")
        zone = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-zone"}}
        await author.put(shared, {**zone, "data": {"other": "x"}})
        roster = {
            "teams": "one: Ada (lead), Alan (clerk); two: Alan (clerk)\n",
            "host": "desk",
            "parent": "north.example",
            "size": "small",
        }
        await rosters.has(f"{name}-roster", **roster, zone="nowhere")
        for each in ("north", "south"):
            await rosters.has(f"{name}-{each}", of=f"{name}-roster", region=each)

        async def ended() -> bool:
            await run_pods(rosters, f"job-name={name}-job", phase="Succeeded")
            return "finished" in (await author.get(rosters.path(name)))["status"]

        await eventually(ended)
        status = (await rosters.ready(name))["status"]
        assert status["regions"] == ["north", "south"]
        job = await author.get(f"{JOBS}/{name}-job")
        assert status["finished"] == job["status"]["completionTime"]
        assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["sleep", "2"]

        await author.put(shared, {**zone, "data": {"name": "polar"}})
        await rosters.has(f"{name}-roster", **roster, zone="polar")
        await rosters.remove(name)
        assert await rosters.data(f"{name}-roster") is None
        assert await author.get(shared) is not None
        await author.delete(shared)


async def test_composites_in_composites_of_kro(author: Author, group: str, imported: Import) -> None:
    objects = all_of("", "namespaces", "resourcequotas", "configmaps")
    name = group.partition(".")[0][:30].strip("-")
    space = f"{NAMESPACES}/{name}"
    async with (
        rights_on(
            author, f"compose-{group}", all_of(group), objects, all_of("networking.k8s.io", "networkpolicies")
        ),
        imported(TENANTS) as decide,
    ):
        assert [each.partition(" the types of ")[2].partition(" from ")[0] for each in decide] == [
            "theme",
            "theme",
        ]
        tenants = Composites(author, group, "tenant", "v1alpha1", namespaced=False)
        await tenants.apply(name, tenantId=name, theme="dark")
        assert (await tenants.ready(name))["status"].items() >= {"theme": "dark", "space": name}.items()
        assert (await author.get(f"{space}/configmaps/main-settings"))["data"] == {"theme": "dark"}
        quota = (await author.get(f"{space}/resourcequotas/quota"))["spec"]["hard"]
        assert quota == {"requests.cpu": "1", "limits.memory": "2Gi"}
        policy = (await author.get(f"{POLICIES}/{name}/networkpolicies/isolation"))["spec"]
        assert policy["podSelector"] == {}

        await tenants.apply(name, tenantId=name, theme="plain")
        await tenants.until(name, lambda found: found["status"]["theme"] == "plain")
        await tenants.remove(name)
        await author.gone(space)


async def test_patches_and_transforms_of_crossplane(
    author: Author, plane: Cluster, group: str, imported: Import
) -> None:
    plane.kubectl("apply", "--server-side", "--filename=-", input=documents(BUCKETS, group))
    plane.kubectl.wait_established(f"crd/buckets.{group}")
    async with (
        rights_on(author, f"compose-{group}", all_of(group), all_of("", "configmaps")),
        imported(STORES) as decide,
    ):
        assert decide == []
        stores = Composites(author, group, "store", "v1", namespaced=True)
        name = group.partition(".")[0][:30].strip("-")
        bucket = f"/apis/{group}/v1/namespaces/default/buckets/{name}-bucket"
        await stores.apply(name, region="north", team="search", days="120", tier="COLD", tags={"a": "b"})
        await stores.says(name, "Ready", "False", "Creating", "bucket: ")
        found = await author.get(bucket)
        assert found["metadata"]["labels"]["example.org/team"] == "search"
        assert found["metadata"]["annotations"]["example.org/gigabytes"] == "2"
        assert found["spec"] == {
            "providerConfigRef": {"name": "default"},
            "forProvider": {
                "location": "eu-north-1",
                "class": "cold",
                "prefix": "default/search",
                "megabytes": 2048,
                "tags": {"a": "b"},
                "rules": [{"kind": "expire", "days": 90}],
            },
        }
        settings = {"note": "costs ${price}", "region": "cold", "tier": "COLD"}
        await stores.has(f"{name}-settings", **settings)
        status = (await author.get(stores.path(name)))["status"]
        assert status["megabytes"] == 2048
        assert status["bucket"] == {}

        # As the provider does.
        made = {"atProvider": {"id": "b-17"}, "conditions": [{"type": "Ready", "status": "True"}]}
        await stores.patch(f"{bucket}/status", {"status": made}, manager="provider")
        expected = {"id": "b-17", "url": "https://b-17.eu-north-1.example.org"}
        assert (await stores.ready(name))["status"]["bucket"] == expected

        # Where the composite lacks a field, the value of the base comes back.
        await stores.apply(name, region="south", team="search", gigabytes=3)

        async def follows() -> bool:
            now = (await author.get(bucket))["spec"]["forProvider"]
            return (now["location"], now["megabytes"], now["class"]) == ("eu-south-2", 3072, "standard")

        await eventually(follows)
        now = (await author.get(bucket))["spec"]["forProvider"]
        assert "tags" not in now
        assert now["rules"] == [{"kind": "expire", "days": 30}]
        await stores.has(f"{name}-settings", note="costs ${price}", region="warm")
        await stores.until(
            name,
            lambda found: (
                found["status"]["bucket"]["url"] == "https://b-17.eu-south-2.example.org"
                and found["status"]["megabytes"] == 3072
            ),
        )
        await stores.remove(name)
        assert await author.get(bucket) is None
