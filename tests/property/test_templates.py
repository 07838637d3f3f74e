"""Random graphs of resources: the order follows the references, and rendering depends on its input alone."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crdkeeper.core.templates.graph import cycle, waves
from crdkeeper.core.templates.rendered import Rendering, ResourceState
from crdkeeper.core.templates.rendering import render
from tests.unit.core.templates.compositions import DATABASE, compiled, in_files, result, server, summary

NAMES = [f"r{i}" for i in range(8)]
HARD, SOFT, LATER = "${%s.metadata.name}", "${%s.?metadata.?name}", "${%s.status.phase}"
KINDS_OF_REFERENCE = (HARD, SOFT, LATER)


@st.composite
def graphs(draw: st.DrawFn, *, cycles: bool = False) -> dict[str, dict[str, str]]:
    """Resources in any order, each with those that it refers to, and how."""
    order = draw(st.permutations(NAMES))
    made = {}
    for at, name in enumerate(order):
        candidates = [each for each in (NAMES if cycles else order[:at]) if each != name]
        chosen = draw(st.lists(st.sampled_from(candidates), unique=True, max_size=3)) if candidates else []
        made[name] = {each: draw(st.sampled_from(KINDS_OF_REFERENCE)) for each in chosen}
    return {name: made[name] for name in draw(st.permutations(NAMES))}


def resources(graph: dict[str, dict[str, str]], excluded: set[str]) -> list[dict[str, Any]]:
    return [
        server(
            name,
            called=name,
            texts=[how % other for other, how in needs.items()],
            IncludeWhen=["${false}"] if name in excluded else [],
        )
        for name, needs in graph.items()
    ]


def states(made: Rendering) -> dict[str, ResourceState]:
    return {each.name: each.state for each in made.resources}


@given(graphs(cycles=True))
def test_every_graph_has_an_order_or_a_cycle(graph: dict[str, dict[str, str]]) -> None:
    found, around = waves(graph), cycle(graph)
    position = {name: at for at, wave in enumerate(found) for name in wave}
    assert all(position[other] < position[name] for name in position for other in graph[name])
    assert (around is None) == (len(position) == len(graph))
    if around is not None:
        assert around[0] == around[-1]
        assert all(other in graph[name] for name, other in pairwise(around))


@settings(max_examples=60, deadline=None)
@given(graphs(cycles=True))
def test_cycles_are_refused(graph: dict[str, dict[str, str]]) -> None:
    assert (result(*resources(graph, set())).composition is None) == (cycle(graph) is not None)


@settings(max_examples=50, deadline=None)
@given(graphs(), st.sets(st.sampled_from(NAMES), max_size=3), st.sets(st.sampled_from(NAMES)))
def test_rendering(graph: dict[str, dict[str, str]], excluded: set[str], existing: set[str]) -> None:
    composition = compiled(*resources(graph, excluded))

    def again(observed: list[dict[str, Any]]) -> Rendering:
        return render(composition, DATABASE, in_files(*observed))

    observed = [
        there for each in again([]).objects if (there := running(each))["metadata"]["name"] in existing
    ]
    made = again(observed)
    found = states(made)
    position = {name: at for at, name in enumerate(found)}
    assert all(position[other] < position[name] for name in graph for other in graph[name])
    for name, needs in graph.items():
        gone = {other for other in needs if found[other] is ResourceState.EXCLUDED}
        hard = {other for other in gone if needs[other] != SOFT}
        assert (found[name] is ResourceState.EXCLUDED) == (name in excluded or bool(hard))
        if found[name] is ResourceState.RENDERED:
            assert all(found[other] is ResourceState.RENDERED for other in needs.keys() - gone)
    same = again(observed[::-1])
    assert (made.objects, summary(made)) == (same.objects, summary(same))

    # Once all objects exist, nothing is left to wait for, and one more rendering changes nothing.
    for _ in NAMES:
        made = again([running(each) for each in made.objects])
    assert set(states(made).values()) <= {ResourceState.RENDERED, ResourceState.EXCLUDED}
    assert made.objects == again([running(each) for each in made.objects]).objects


def running(rendered: dict[str, Any]) -> dict[str, Any]:
    """The object as it is in a cluster."""
    return {**rendered, "status": {"phase": "up"}}
