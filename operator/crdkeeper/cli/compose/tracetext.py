"""The tree of a composite as text for terminals, and as a graph for Graphviz."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from crdkeeper.api.meta import RECONCILING, STALLED
from crdkeeper.core.composites.tree import TracedComposite, TracedObject, TracedResource, TracedState
from crdkeeper.core.text import visible

_LEAST: Final = 30
"""Characters for text, however deep it is in the tree."""
_SAID: Final = {
    TracedState.READY: "ready",
    TracedState.NOT_READY: "not ready",
    TracedState.MISSING: "missing",
    TracedState.TO_DELETE: "to be deleted",
    TracedState.NOT_OURS: "not the composite's",
    TracedState.READ: "read",
    TracedState.UNKNOWN: "unknown",
}
_COLORS: Final = {
    TracedState.READY: "palegreen",
    TracedState.READ: "palegreen",
    TracedState.NOT_READY: "khaki",
    TracedState.MISSING: "khaki",
    TracedState.UNKNOWN: "lightgray",
    TracedState.NOT_OURS: "lightsalmon",
    TracedState.TO_DELETE: "lightblue",
    TracedState.DELETING: "lightblue",
}


def tree_lines(root: TracedComposite, width: int | None) -> Iterator[str]:
    """The tree, line by line: none longer than `width`, unless a single word is."""
    yield from _wrapped(_named(root.kind, root.namespace, root.name), "", "", width)
    yield from _composite(root, "", width)


def _composite(node: TracedComposite, indent: str, width: int | None) -> Iterator[str]:
    parts: Sequence[TracedResource] = node.resources
    bar = f"{indent}{'│' if parts else ' '} "
    for said in _about(node):
        yield from _wrapped(said, bar, f"{bar}  ", width)
    for part in parts:
        last = part is parts[-1]
        below = f"{indent}{' ' if last else '│'}  "
        yield from _wrapped(_resource(part), f"{indent}{'└' if last else '├'}─ ", f"{below}    ", width)
        for of in part.objects:
            end = of is part.objects[-1]
            inner = f"{below}{' ' if end else '│'}  "
            yield from _wrapped(_object(of), f"{below}{'└' if end else '├'}─ ", f"{inner}    ", width)
            if of.composite is not None:
                yield from _composite(of.composite, inner, width)


def _about(node: TracedComposite) -> Iterator[str]:
    if node.revision:
        of = f"Composition {node.composition}, " if node.composition else ""
        yield f"{of}CompositionRevision {node.revision}"
    else:
        yield "nothing is composed yet"
    if node.deletion_timestamp:
        waits = f", and waits for its finalizers: {', '.join(node.finalizers)}" if node.finalizers else ""
        yield f"it is being deleted since {node.deletion_timestamp}{waits}"
    if node.paused:
        yield "it is paused"
    for each in node.conditions:
        if each.type in (RECONCILING, STALLED):
            # They repeat one of the others, for kstatus.
            continue
        yield f"{each.type}: {each.status}, {each.reason}: {each.message}"
    if node.stale and node.conditions:
        yield "The composer has not seen the last change of the composite yet."
    yield from node.remarks


def _resource(part: TracedResource) -> str:
    state = {
        "Rendered": "",
        "Listed": "",
        "GivenUp": ": not in the revision any more",
        "Read": ": externalRef",
    }.get(part.state, f": {part.state.lower()}")
    same = any(each.message == part.message for each in part.objects)
    return f"{part.name}{state}" + (f": {part.message}" if part.message and not same else "")


def _object(each: TracedObject) -> str:
    stays = " (deletion: Orphan)" if each.deletion else ""
    name = f"{_named(each.kind, each.namespace, each.name)}{stays}"
    if each.state is TracedState.DELETING:
        return f"{name}: {each.message}"
    return f"{name}: {_SAID[each.state]}" + (f": {each.message}" if each.message else "")


def _named(kind: str, namespace: str | None, name: str) -> str:
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _wrapped(text: str, first: str, rest: str, width: int | None) -> Iterator[str]:
    text = visible(text)
    if width is None:
        yield first + text
        return
    room = max(_LEAST, width - len(rest))
    for number, each in enumerate(textwrap.wrap(text, room, break_on_hyphens=False) or [""]):
        yield (rest if number else first) + each


def dot_lines(root: TracedComposite) -> Iterator[str]:
    """The graph in Graphviz's language: composites, resources and objects."""
    yield "digraph composite {"
    yield "  rankdir=LR; node [shape=box, style=filled, fillcolor=white];"
    number = 0
    waiting: list[tuple[TracedComposite, int]] = [(root, 0)]
    yield _node(0, _named(root.kind, root.namespace, root.name), "palegreen" if root.ready else "khaki")
    while waiting:
        node, at = waiting.pop()
        for part in node.resources:
            number += 1
            resource = number
            yield _node(resource, _resource(part), "white", "ellipse")
            yield f"  n{at} -> n{resource};"
            for each in part.objects:
                number += 1
                yield _node(number, _object(each), _COLORS[each.state])
                yield f"  n{resource} -> n{number};"
                if each.composite is not None:
                    waiting.append((each.composite, number))
    yield "}"


def _node(number: int, label: str, color: str, shape: str = "box") -> str:
    text = visible(label).replace("\\", "\\\\").replace('"', '\\"')
    return f'  n{number} [label="{text}", fillcolor={color}, shape={shape}];'
