"""A role for composites that an earlier version documented: list, watch and delete."""

import re

import pytest

from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import ROLES, Author, until_denied
from tests.cluster.composition.composing import Composing, all_of, config_map, rights_on
from tests.cluster.composition.test_composer_composing_troubles import said_of
from tests.cluster.harness import eventually
from tests.cluster.harness.faultproxy import FaultProxy

NUMBER = 40


@pytest.fixture
def author(proxied_author: Author) -> Author:
    """A user of the composer whose requests are recorded."""
    return proxied_author


def rule_of(composing: Composing, group: str, verbs: str) -> str:
    """What is said to be added to the role."""
    plural = composing.definition.plural
    return (
        "Create a ClusterRole that has the label "
        'rbac.crdkeeper.dev/aggregate-to-composer: "true" and this rule: '
        f"{{apiGroups: [{group}], resources: [{plural}, {plural}/status], verbs: [{verbs}]}}"
    )


async def test_the_definition_says_so_until_the_rule_is_granted(
    author: Author, observer: Observer, group: str
) -> None:
    composing = Composing(author, group)
    await composing.define(deletion="Cascade")
    thing = composing.definition
    await observer.sees(thing, "Offered", "False", "NoComposition", judged="Current")
    # Without a composite: whoever offers the API hears of it first.
    await composing.compose(config_map("settings"))
    missing = f"get things.{group}, patch things.{group}, patch things.{group}/status"
    rule = rule_of(composing, group, "get, list, watch, patch, delete")
    await observer.sees(thing, "Offered", "False", "RightMissing", missing, rule, judged="Current")
    part = {"apiGroups": [group], "resources": ["things"], "verbs": ["get", "patch"]}
    status = {"apiGroups": [group], "resources": ["things/status"], "verbs": ["patch"]}
    async with rights_on(author, f"part-{group}", part):
        said = f"the composites (patch things.{group}/status)."
        await observer.sees(thing, "Offered", "False", "RightMissing", said, judged="Current")
        async with rights_on(author, f"rest-{group}", status, all_of("", "configmaps")):
            await observer.sees(thing, "Offered", "True", "OnlyOne", judged="Current")
            await composing.create("orders")
            await composing.ready("orders")
        await until_denied(author, group, "things/status", "patch")
        # A right that goes is noticed by the composites that need it.
        await composing.create("orders", zone="b")
        await observer.sees(thing, "Offered", "False", "RightMissing", said, judged="Current")
        async with rights_on(author, f"rest-{group}", status, all_of("", "configmaps")):
            await observer.sees(thing, "Offered", "True", "OnlyOne", judged="Current")
            await composing.clean_up()


async def test_without_any_right_the_rule_is_all_that_is_needed(
    author: Author, observer: Observer, group: str
) -> None:
    role = await author.get(f"{ROLES}/composer-{group}")
    await author.delete(f"{ROLES}/composer-{group}")
    await until_denied(author, group, "things", "list", "watch")
    composing = Composing(author, group)
    thing = composing.definition
    await author.apply(thing)
    alone = f"(list things.{group}, watch things.{group})."
    small = f"{{apiGroups: [{group}], resources: [things], verbs: [list, watch]}}"
    await observer.sees(thing, "Established", "False", "RightMissing", alone, small, judged="Failed")
    await composing.compose(config_map("settings"))
    missing = f"(list things.{group}, watch things.{group}, get things.{group}, patch things.{group}, "
    large = rule_of(composing, group, "get, list, watch, patch")
    await observer.sees(thing, "Established", "False", "RightMissing", missing, large, judged="Failed")
    # Whoever adds only what an earlier version said is told the rest.
    await author.put(
        f"{ROLES}/composer-{group}",
        {
            **{key: role[key] for key in ("apiVersion", "kind", "rules")},
            "metadata": {"name": f"composer-{group}", "labels": role["metadata"]["labels"]},
        },
    )
    await observer.sees(thing, "Established", "True", "WatchingCompositeResource", judged="Current")
    await observer.sees(thing, "Offered", "False", "RightMissing", large, judged="Current")
    await composing.clean_up()


async def test_it_costs_one_review_in_a_while(author: Author, proxy: FaultProxy, group: str) -> None:
    composing = Composing(author, group)
    await composing.define()
    await composing.compose(config_map("settings"))
    names = [f"a-{number}" for number in range(NUMBER)]
    for each in names:
        await composing.create(each)
    start = len(proxy.requests)

    async def reviewed() -> bool:
        reviews = [each for each in proxy.requests[start:] if each.path.endswith("/selfsubjectaccessreviews")]
        return len(reviews) >= 12

    # Twice, of three rights each: for the composites, and for the condition of the definition.
    await eventually(reviewed)
    one = re.compile(rf"/apis/{re.escape(group)}/v1/namespaces/default/things/a-\d+$")
    read = [each for each in proxy.requests[start:] if each.method == "GET" and one.search(each.path)]
    assert len(read) < NUMBER
    assert len(await said_of(author, composing.definition)) == 1
    async with rights_on(author, f"more-{group}", all_of(group), all_of("", "configmaps")):
        for each in names:
            await composing.ready(each)
        await composing.clean_up()
