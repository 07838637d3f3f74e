"""Which Composition and which of its revisions a composite runs by, when somebody changes what decides it."""

from typing import Any

import pytest

from tests.cluster.composition.composing import CONFIG_MAPS, Composing, config_map, entries, pinned
from tests.cluster.composition.designing import COMPOSITIONS

Json = Any


def by_name(composing: Composing, which: str) -> Json:
    """A reference to a Composition."""
    return {"name": composing.designer.name(which)}


async def runs_by(composing: Composing, composite: str, which: str, number: int = 1) -> Json:
    """The composite once it is ready by a revision."""
    return await composing.runs_by(composite, number, which)


@pytest.mark.composes("configmaps", defined=False)
async def test_the_enforced_composition_wins(composing: Composing) -> None:
    await composing.define(enforcedCompositionRef=by_name(composing, "main"))
    await composing.compose(config_map("main"), labels={"tier": "low"})
    await composing.compose(config_map("second"), which="second", labels={"tier": "high"})
    await composing.create("named", crdkeeper={"compositionRef": by_name(composing, "second")})
    selector = {"compositionSelector": {"matchLabels": {"tier": "high"}}}
    await composing.create("selects", crdkeeper=selector)
    for each in ("named", "selects"):
        assert entries(await runs_by(composing, each, "main")) == [f"{each}-main"]


async def test_the_default_is_for_those_that_choose_nothing(composing: Composing) -> None:
    await composing.define(defaultCompositionRef=by_name(composing, "main"))
    await composing.compose(config_map("main"), config_map("both", version="1"), labels={"tier": "low"})
    second = config_map("second"), config_map("both", version="2")
    await composing.compose(*second, which="second", labels={"tier": "high"})
    await composing.create("default")
    await composing.create("named", crdkeeper={"compositionRef": by_name(composing, "second")})
    selector = {"compositionSelector": {"matchLabels": {"tier": "high"}}}
    await composing.create("selects", crdkeeper=selector)
    assert entries(await runs_by(composing, "default", "main")) == ["default-both", "default-main"]
    for each in ("named", "selects"):
        assert entries(await runs_by(composing, each, "second")) == [f"{each}-both", f"{each}-second"]
    before = await composing.author.get(f"{CONFIG_MAPS}/default-both")
    # Another default moves those that follow it: what both have is changed, the rest goes.
    await composing.define(defaultCompositionRef=by_name(composing, "second"))
    await runs_by(composing, "default", "second")
    await composing.gone("default-main")
    await composing.has("default-both", version="2")
    after = await composing.author.get(f"{CONFIG_MAPS}/default-both")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_selector_has_to_find_one(composing: Composing) -> None:
    await composing.compose(config_map("main"), labels={"tier": "high"})
    await composing.create("orders", crdkeeper={"compositionSelector": {"matchLabels": {"tier": "low"}}})
    said = "No Composition for Thing with a CompositionRevision has the labels of spec.crdkeeper"
    await composing.says("orders", "Synced", "False", "NoRevision", said)
    selector = {"compositionSelector": {"matchLabels": {"tier": "high"}}}
    await composing.create("orders", crdkeeper=selector)
    await runs_by(composing, "orders", "main")
    # A second one that fits is no dice: what there is stays.
    await composing.compose(config_map("other"), which="other", labels={"tier": "high"})
    names = ", ".join(composing.designer.name(each) for each in ("main", "other"))
    found = await composing.says(
        "orders", "Synced", "False", "NoRevision", f"2 Compositions could be used: {names}."
    )
    assert entries(found) == ["orders-main"]
    await composing.has("orders-main")
    # Labels are those of the newest revision: it leaves the choice by them.
    await composing.compose(config_map("other"), which="other", number=2, labels={"tier": "low"})
    await runs_by(composing, "orders", "main")


async def test_content_that_comes_again_recreates_nothing(composing: Composing) -> None:
    first = config_map("settings", version="a"), config_map("data")
    await composing.compose(*first)
    await composing.create("orders")
    await runs_by(composing, "orders", "main", 1)
    paths = [f"{CONFIG_MAPS}/orders-{each}" for each in ("settings", "data")]
    before = [await composing.author.get(each) for each in paths]
    await composing.compose(config_map("settings", version="b"), config_map("data"), number=2)
    await runs_by(composing, "orders", "main", 2)
    await composing.has("orders-settings", version="b")
    await composing.compose(*first, number=3)
    await runs_by(composing, "orders", "main", 3)
    await composing.has("orders-settings", version="a")
    settings, data = [await composing.author.get(each) for each in paths]
    assert settings["metadata"]["uid"] == before[0]["metadata"]["uid"]
    assert data == before[1]


async def test_composites_run_on_without_their_composition(composing: Composing) -> None:
    await composing.compose(config_map("settings", engine="${composite.spec.engine}"))
    await composing.create("orders")
    await runs_by(composing, "orders", "main")
    await composing.designer.delete("main")
    await composing.author.gone(f"{COMPOSITIONS}/{composing.designer.name('main')}")
    await composing.patch(f"{CONFIG_MAPS}/orders-settings", {"data": {"engine": "Oracle"}})
    await composing.has("orders-settings", engine="MySQL")
    await composing.create("orders", engine="Postgres")
    await composing.has("orders-settings", engine="Postgres")
    # The revision stays while it is used, so that new composites can use it, too.
    await composing.create("bills")
    await runs_by(composing, "bills", "main")
    # The Composition comes back with other content.
    await composing.compose(config_map("settings", engine="any"), number=2)
    for each in ("orders", "bills"):
        await runs_by(composing, each, "main", 2)
        await composing.has(f"{each}-settings", engine="any")


async def test_revisions_in_use_stay_beyond_the_limit(composing: Composing) -> None:
    manual = {"compositionUpdatePolicy": "Manual"}
    await composing.compose(config_map("settings", version="1"), revisionHistoryLimit=1)
    await composing.create("old", crdkeeper=manual)
    await runs_by(composing, "old", "main", 1)
    await composing.create("new")
    for number in (2, 3, 4, 5):
        resource = config_map("settings", version=f"{number}")
        await composing.compose(resource, number=number, revisionHistoryLimit=1)
        await runs_by(composing, "new", "main", number)
    await composing.designer.until("main", [1, 4, 5].__eq__)
    await composing.has("old-settings", version="1")
    # It moves when somebody says so; then nobody needs the first one.
    name = composing.designer.name("main")
    reference = {**manual, "compositionRevisionRef": {"name": f"{name}-5"}}
    await composing.create("old", crdkeeper=reference)
    await composing.has("old-settings", version="5")
    await composing.designer.until("main", [4, 5].__eq__)


async def test_manual_by_the_definition_and_references_that_fit_nothing(composing: Composing) -> None:
    await composing.define(defaultCompositionUpdatePolicy="Manual")
    await composing.compose(config_map("settings", version="1"))
    await composing.create("orders")
    name = composing.designer.name("main")
    await composing.until("orders", lambda found: pinned(found) == f"{name}-1")
    await composing.compose(config_map("settings", version="2"), number=2)
    await composing.create("bills", crdkeeper={"compositionUpdatePolicy": "Automatic"})
    await runs_by(composing, "bills", "main", 2)
    await composing.has("orders-settings", version="1")
    for wrong in (f"{name}-7", "another-1"):
        await composing.create("orders", crdkeeper={"compositionRevisionRef": {"name": wrong}})
        found = await composing.says("orders", "Synced", "False", "NoRevision", f"names {wrong}, which is no")
        assert entries(found) == ["orders-settings"]
        await composing.has("orders-settings", version="1")
    await composing.create("orders", crdkeeper={"compositionRevisionRef": {"name": f"{name}-2"}})
    await runs_by(composing, "orders", "main", 2)
    # Automatic follows again, whatever the reference says.
    await composing.compose(config_map("settings", version="3"), number=3)
    await composing.has("bills-settings", version="3")
    await composing.has("orders-settings", version="2")
    await composing.create("orders", crdkeeper={"compositionUpdatePolicy": "Automatic"})
    await runs_by(composing, "orders", "main", 3)
