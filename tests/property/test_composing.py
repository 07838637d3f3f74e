"""Random graphs, changes, refusals and kills: the order follows the references, and nothing is forgotten."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.core.composites import reasons
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.core.composites.scenes import Killed, Scene
from tests.unit.core.templates.compositions import server

NAMES = [f"r{i}" for i in range(6)]
Graph = Mapping[str, frozenset[str]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Some resources, each with those that it refers to."""
    order = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    return {
        name: draw(st.frozensets(st.sampled_from(order[:at]), max_size=3)) if at else frozenset()
        for at, name in enumerate(order)
    }


def resources(graph: Graph, text: str) -> list[Any]:
    return [
        server(name, text=text, texts=[f"${{{each}.metadata.name}}" for each in sorted(needs)])
        for name, needs in graph.items()
    ]


class Watched(Scene):
    """A scene in which the order is checked with each request."""

    graph: Graph

    def change(self, graph: Graph, text: str) -> None:
        self.graph = graph
        self.compose(*resources(graph, text))

    def check(self) -> None:
        """The order of what was done since the last check, from what there was then."""
        there = self.before
        for each in self.done:
            what, _, name = each.partition(" ")
            if what in ("create", "change"):
                assert self.graph[name] <= there, each
                there = there | {name}
            elif "deletionTimestamp" in self.value["metadata"]:
                assert not [other for other in there if name in self.graph.get(other, ())], each
                there = there - {name}
            else:
                assert name not in self.graph
                there = there - {name}
        self.begin()

    def begin(self) -> None:
        self.done.clear()
        self.before = frozenset(self.names())

    def listed(self) -> set[str]:
        state = (self.value.get("status") or {}).get("crdkeeper") or {}
        return {each["name"] for each in state.get("resources") or ()}


STEP = st.tuples(
    graphs(),
    st.sampled_from("xyz"),
    st.frozensets(st.sampled_from(NAMES), max_size=2),
    st.integers(0, 8),
    st.booleans(),
)


@given(st.lists(STEP, min_size=1, max_size=4), st.integers(0, 8))
def test_the_order_follows_the_references_and_nothing_is_forgotten(steps: list[Any], kill: int) -> None:
    scene, forgotten = Watched(server("r0")), False
    for graph, text, refused, left, lost in steps:
        scene.change(graph, text)
        scene.begin()
        scene.refused = {each: Verdict(reasons.REFUSED, "no") for each in refused}
        scene.left = left
        try:
            scene.run()
        except Killed:
            # What exists is in the inventory, whenever that happens, unless somebody has emptied it.
            assert forgotten or set(scene.names()) <= scene.listed()
        scene.check()
        forgotten = lost
        if lost:
            scene.value["status"] = {}
    scene.refused, scene.left = {}, None
    scene.run()
    scene.check()
    assert set(scene.names()) == set(scene.graph) == scene.listed()
    before = dict(scene.value["status"])
    scene.run()
    assert (scene.done, scene.value["status"]) == ([], before)

    scene.value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.left = kill
    try:
        scene.run()
    except Killed:
        scene.left = None
        scene.run()
    scene.check()
    assert scene.names() == []
