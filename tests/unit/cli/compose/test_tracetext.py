"""The tree of a composite as text: fits a terminal, and nothing in it acts."""

import pytest

from crdkeeper.cli.compose.tracetext import dot_lines, tree_lines
from crdkeeper.core.composites.tree import TracedComposite, TracedObject, TracedResource, TracedState
from crdkeeper.core.text import visible
from tests.unit.cli.hostile import ALL, assert_harmless


def composite(**more: object) -> TracedComposite:
    """A composite with these fields."""
    fields = {"api_version": "example.com/v1", "kind": "Database", "namespace": "shop", "name": "orders"}
    return TracedComposite.model_validate({**fields, **more})


def thing(name: str, state: TracedState = TracedState.READY, **more: object) -> TracedObject:
    """An object with these fields."""
    fields = {"api_version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name, "state": state}
    return TracedObject.model_validate({**fields, **more})


def part(name: str, *objects: TracedObject, state: str = "Rendered", **more: object) -> TracedResource:
    """A resource."""
    return TracedResource.model_validate({"name": name, "state": state, "objects": list(objects), **more})


def test_a_tree_with_a_composite_in_it() -> None:
    inner = composite(name="inner", revision="r-2", resources=[part("c", thing("c"))])
    objects = (thing("a", composite=inner), thing("b", TracedState.MISSING, message="it does not exist"))
    root = composite(
        revision="r-1",
        composition="main",
        resources=[part("first", *objects), part("last", state="Waiting", message="waits for first")],
    )
    assert list(tree_lines(root, None)) == [
        "Database shop/orders",
        "│ Composition main, CompositionRevision r-1",
        "├─ first",
        "│  ├─ ConfigMap shop/a: ready",
        "│  │  │ CompositionRevision r-2",
        "│  │  └─ c",
        "│  │     └─ ConfigMap shop/c: ready",
        "│  └─ ConfigMap shop/b: missing: it does not exist",
        "└─ last: waiting: waits for first",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    said = "Deployment shop/a: 1 of 3 replicas are available, and " * 5
    root = composite(resources=[part("a", thing("a", TracedState.NOT_READY, message=said))], remarks=[said])
    lines = list(tree_lines(root, width))
    assert max(map(len, lines)) <= width
    assert "".join(lines).count("replicas") == 10
    assert len(list(tree_lines(root, None))) == 5


def test_what_strangers_have_written_does_not_act() -> None:
    root = composite(
        name=ALL, remarks=[ALL], resources=[part(ALL, thing(ALL, message=ALL), state="GivenUp", message=ALL)]
    )
    for width in (None, 40):
        # As `lines` prints them: where a text is wrapped, a line may begin with what is harmless in it.
        assert_harmless("\n".join(map(visible, tree_lines(root, width))), markup=width is None)
    graph = "\n".join(map(visible, dot_lines(root)))
    assert_harmless(graph)
    quoted = composite(name='"; x [label="', resources=[part('a\\" b', thing("c"))])
    assert '[label="Database shop/\\"; x [label=\\"", ' in "\n".join(dot_lines(quoted))
    assert '[label="a\\\\\\" b", ' in "\n".join(dot_lines(quoted))
