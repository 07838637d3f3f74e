"""Composer and operator at rest: each behind a proxy that counts its requests, with a conversion at work."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from crdkeeper.cluster.transport.client import APPLY_PATCH, MERGE_PATCH
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import (
    QUIET_SECONDS,
    WINDOWS,
    Author,
    Definition,
    Json,
    condition,
    opted_in,
    spec_with,
)
from tests.cluster.composition.composerscene import operator_beside
from tests.cluster.harness import NAMESPACE, SERVICE_ACCOUNT, Operator, eventually
from tests.cluster.harness.faultproxy import FaultProxy, Request
from tests.controlplane.cluster import Cluster
from tests.unit.core.composition.documents import schema, version

CONVERSIONS = "/apis/crdkeeper.dev/v1alpha1/versionconversions"
REST_SECONDS = 18.0
"""Longer than a rehearsal counts, and than the composer waits before it looks again at what is refused."""

pytestmark = pytest.mark.usefixtures("keeper")


@pytest.fixture(scope="module")
def way(plane: Cluster) -> Iterator[FaultProxy]:
    """The way of the operator to the API server."""
    with FaultProxy(plane) as way:
        yield way


@pytest.fixture(scope="module")
def keeper(
    composer: Operator, plane: Cluster, way: FaultProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """The operator with a conversion webhook, behind its proxy."""
    kubeconfig = way.kubeconfig(plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT))
    with operator_beside(plane, tmp_path_factory.mktemp("webhook"), kubeconfig=str(kubeconfig)) as operator:
        yield operator


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer behind its proxy."""
    return proxied_author


@dataclass(frozen=True)
class Ways:
    """Those of the composer and of the operator."""

    composer: FaultProxy
    operator: FaultProxy

    def now(self) -> tuple[int, int]:
        """The present ends of both records."""
        return len(self.composer.requests), len(self.operator.requests)

    def writes(self, since: tuple[int, int]) -> list[Request]:
        """What both have written since."""
        return [*self.composer.writes(since[0]), *self.operator.writes(since[1])]

    async def until_quiet(self) -> None:
        """Returns when neither has written anything for some seconds."""

        async def quiet() -> bool:
            since = self.now()
            await asyncio.sleep(QUIET_SECONDS)
            return not self.writes(since)

        await eventually(quiet)

    async def rest(self) -> None:
        """Checks that both come to rest: a write that is late is none that comes again and again."""
        seen: list[Request] = []
        for _ in range(WINDOWS):
            since = self.now()
            await asyncio.sleep(REST_SECONDS)
            if not (written := self.writes(since)):
                return
            seen += written
        raise AssertionError(f"no rest of {REST_SECONDS:.0f} seconds: {[str(each) for each in seen]}")


def definition(*more: str) -> Json:
    """Two versions of which one has a field more, besides those that both have."""
    return [
        version("v1", schema(spec_with(*more))),
        version("v2", schema(spec_with("size", *more)), referenceable=False),
    ]


def conversion(thing: Definition, **fill: str) -> Json:
    """The rules for that field."""
    rule = {"spoke": "spec.size", "aside": True, **fill}
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": thing.name},
        "spec": {
            "resource": {"group": thing.group, "resource": thing.plural},
            "hub": "v1",
            "spokes": [{"version": "v2", "rules": [rule]}],
        },
    }


async def test_each_change_is_one_write_and_none_follows(
    author: Author, observer: Observer, proxy: FaultProxy, way: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    rules, ways = f"{CONVERSIONS}/{thing.name}", Ways(proxy, way)

    async def works() -> None:
        await observer.sees(thing, "Ready", "True", "WatchingCompositeResource", judged="Current")

        async def serves() -> bool:
            found = await author.get(rules)
            current = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
            return current and condition(found, "Ready")[0] == "True"

        await eventually(serves)

    async def state() -> list[Json]:
        composites = (await author.get(f"{thing.objects}?limit=100"))["items"]
        return [*[await author.get(each) for each in (thing.path, thing.crd, rules)], composites]

    async def generation_of_crd() -> int:
        return int((await author.get(thing.crd))["metadata"]["generation"])

    async with opted_in(author, thing, "reader", "converter"):
        await author.apply(thing, deletion="Cascade")
        await author.ready(thing)
        await author.make_composites(thing, ["a", "b"])
        await author.put(rules, conversion(thing))
        await author.apply(thing, versions=definition(), deletion="Cascade")
        await works()
        converts = (await author.get(thing.crd))["spec"]["conversion"]
        assert converts["strategy"] == "Webhook"
        await ways.until_quiet()

        # Others change what neither maintains: both look, and leave it. Managers stand in the order of their
        # last changes, and in one second by name: a change by the composer would come behind "another".
        since = ways.now()
        mark = {"annotations": {"example.com/mark": "1"}}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        body = {**kind, "metadata": {"name": thing.name, **mark}}
        path = f"{thing.crd}?fieldManager=another"
        marked = await author.client.request("PATCH", path, body, content_type=APPLY_PATCH)
        composite = f"{thing.objects}/a"
        await author.client.request("PATCH", composite, {"metadata": mark}, content_type=MERGE_PATCH)
        before = await state()
        await ways.until_quiet()
        # The composer compares, and asks nothing.
        assert [str(each) for each in proxy.writes(since[0])] == []
        # The operator may report what it has seen.
        assert all("/definitionreports/" in each.path for each in way.writes(since[1]))
        assert await state() == before
        assert before[1] == marked
        await ways.rest()
        assert await state() == before

        # Others change what the composer maintains; then the definition changes, and the rules.
        since, generation = ways.now(), await generation_of_crd()
        taken = {"spec": {"names": {"categories": ["theirs"]}}}
        await author.client.request("PATCH", thing.crd, taken, content_type=MERGE_PATCH)

        async def put_back() -> bool:
            names = (await author.get(thing.crd))["spec"]["names"]
            return bool(names["categories"] == ["composite"])

        await eventually(put_back)
        await author.apply(thing, versions=definition("more"), deletion="Cascade")
        await works()
        assert await author.fields(thing) == ["more"]
        await author.put(rules, conversion(thing, fill="small"))
        await works()
        await ways.until_quiet()
        # The change by somebody else, and one by the composer for that and one for the new definition. It may
        # ask once more after each: the API server writes which names it accepted, before or after it looks.
        assert await generation_of_crd() == generation + 3
        of_crd = [each for each in proxy.writes(since[0]) if each.path.startswith(thing.crd)]
        assert {each.method for each in of_crd} == {"PATCH"}
        # What was decided on an older CRD was refused.
        assert {each.code for each in of_crd} <= {200, 409}
        assert 2 <= [each.code for each in of_crd].count(200) <= 4
        assert not [each for each in way.writes(since[1]) if each.path.startswith(thing.crd)]
        assert (await author.get(thing.crd))["spec"]["conversion"] == converts
        print(f"{len(ways.writes(since))} writes for three changes")

        before = await state()
        await ways.rest()
        assert await state() == before

        await author.delete(thing.path)
        await author.gone(thing.crd)

        async def unused() -> bool:
            # Until the operator hears that the CRD is gone, a policy keeps the rules.
            return condition(await author.get(rules), "InUse")[1] == "NoDefinition"

        await eventually(unused)
        await author.delete(rules)
        await author.gone(rules)
