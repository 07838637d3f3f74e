"""Rights that the composer's manifests give it, and that it lacks: each is said with the rule to add."""

import asyncio

import pytest

from crdkeeper.cluster.transport.client import MERGE_PATCH
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import ROLES, Author, Definition, until_denied, without
from tests.cluster.harness import Operator, eventually
from tests.cluster.harness.faultproxy import FaultProxy

APPLY = "Apply manifests/composer, whose ClusterRole has the missing rule: "


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose watches can be ended."""
    return proxied_author


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "versionconversions"),
        ("get", "compositeresourcedefinitions"),
        ("patch", "compositeresourcedefinitions"),
    ],
)
async def test_a_missing_right_to_its_own_kinds(
    author: Author, observer: Observer, group: str, verb: str, resource: str
) -> None:
    thing = Definition(group, "thing")
    rule = f"{APPLY}{{apiGroups: [crdkeeper.dev], resources: [{resource}], verbs: [{verb}]}}"
    async with without(author, verb, resource):
        await author.apply(thing)
        said = "is forbidden"
        await observer.sees(thing, "Accepted", "False", "RightMissing", said, rule, judged="Failed")
        # A VersionConversion may be there, so that nothing is applied without it.
        assert await author.get(thing.crd) is None
    await author.ready(thing)


async def test_compositions_that_may_not_be_listed_any_more(
    author: Author, observer: Observer, proxy: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    rule = f"{APPLY}{{apiGroups: [crdkeeper.dev], resources: [compositions], verbs: [list, watch]}}"

    async def watches() -> bool:
        # One knows who is offered what, and one checks Compositions.
        return proxy.has_watch(r"/compositions\?", 2)

    await eventually(watches)
    # A watch that has begun continues without the right.
    async with without(author, "list", "compositions"), without(author, "watch", "compositions"):
        assert proxy.end_watches(r"/compositions\?") >= 2
        said = "compositions.crdkeeper.dev is forbidden"
        await observer.sees(thing, "Offered", "Unknown", "CompositionsUnknown", said, rule, judged="Current")
    await observer.sees(thing, "Offered", "False", "NoComposition", judged="Current")


async def test_revisions_that_may_not_be_listed_any_more(
    author: Author, observer: Observer, proxy: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    rule = f"{APPLY}{{apiGroups: [crdkeeper.dev], resources: [compositionrevisions], verbs: [list, watch]}}"

    async def watches() -> bool:
        return proxy.has_watch(r"/compositionrevisions\?", 2)

    await eventually(watches)
    resource = "compositionrevisions"
    async with without(author, "list", resource), without(author, "watch", resource):
        assert proxy.end_watches(r"/compositionrevisions\?") >= 2
        said = "compositionrevisions.crdkeeper.dev is forbidden"
        await observer.sees(thing, "Offered", "Unknown", "CompositionsUnknown", said, rule, judged="Current")
    await observer.sees(thing, "Offered", "False", "NoComposition", judged="Current")


async def test_a_cascade_that_may_not_delete_composites(
    author: Author, observer: Observer, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing, deletion="Cascade")
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    role = f"{ROLES}/composer-{group}"
    given = (await author.get(role))["rules"]
    fewer = [{**each, "verbs": ["list", "watch"]} for each in given]
    await author.client.request("PATCH", role, {"rules": fewer}, content_type=MERGE_PATCH)
    await until_denied(author, group, thing.plural, "delete")
    await author.delete(thing.path)
    rule = f"{{apiGroups: [{group}], resources: [{thing.plural}], verbs: [list, watch, delete]}}"
    await observer.sees(
        thing,
        "Established",
        "False",
        "TerminatingCompositeResource",
        f"the composer lacks rights on the composites (delete {thing.name})",
        f"this rule: {rule}",
        judged="Terminating",
    )
    assert await author.names(thing) == ["a"]
    await author.client.request("PATCH", role, {"rules": given}, content_type=MERGE_PATCH)
    await author.gone(thing.path)


async def test_rights_on_composites_that_are_taken_away_at_rest(
    author: Author, observer: Observer, proxy: FaultProxy, group: str
) -> None:
    thing = Definition(group, "thing")
    await author.apply(thing)
    await author.ready(thing)
    await author.make_composites(thing, ["a"])
    watch = rf"^/apis/{group}/v1/{thing.plural}\?"

    async def watched() -> bool:
        counted = (await author.get(thing.path))["status"]["composites"] == 1
        return counted and proxy.has_watch(watch)

    await eventually(watched)
    before = await author.get(thing.crd)
    role = f"{ROLES}/composer-{group}"
    given = (await author.get(role))["rules"]
    fewer = [{**each, "verbs": ["delete"]} for each in given]
    await author.client.request("PATCH", role, {"rules": fewer}, content_type=MERGE_PATCH)
    await until_denied(author, group, thing.plural, "list", "watch")
    # The API server ends each watch after some minutes; nobody else says that a right is gone.
    assert proxy.end_watches(watch) == 1
    missing = f"(list {thing.name}, watch {thing.name})"
    rule = f"this rule: {{apiGroups: [{group}], resources: [{thing.plural}], verbs: [list, watch]}}"
    await observer.sees(thing, "Established", "False", "RightMissing", missing, rule, judged="Failed")
    await observer.sees(thing, "Ready", "False", "RightMissing", missing, judged="Failed")
    # The API goes on.
    await author.make_composites(thing, ["b"])
    assert await author.get(thing.crd) == before
    await author.client.request("PATCH", role, {"rules": given}, content_type=MERGE_PATCH)
    await observer.sees(thing, "Established", "True", "WatchingCompositeResource", judged="Current")

    async def counted() -> bool:
        return bool((await author.get(thing.path))["status"]["composites"] == 2)

    await eventually(counted)


async def starts_without(proxied: Operator, resource: str) -> None:
    """Start the composer again, and return when its log names the resource that it may not read."""
    proxied.stop()
    start = proxied.log_size()
    proxied.start(wait=False)

    async def says_why() -> bool:
        return f"{resource} is forbidden" in proxied.log_since(start)

    await eventually(says_why)


async def test_a_composer_that_may_not_list_its_kinds_is_not_ready(author: Author, proxied: Operator) -> None:
    async with without(author, "list", "compositeresourcedefinitions"):
        await starts_without(proxied, "compositeresourcedefinitions.crdkeeper.dev")
        assert not proxied.ready()
    await asyncio.to_thread(proxied.wait_ready)


async def test_a_composer_that_may_not_watch_its_kinds_says_so(author: Author, proxied: Operator) -> None:
    # Kopf tries nine times, for a minute, before it ends the process.
    async with without(author, "watch", "versionconversions"):
        await starts_without(proxied, "versionconversions.crdkeeper.dev")
    await asyncio.to_thread(proxied.wait_ready)
