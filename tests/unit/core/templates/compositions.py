"""Compositions and composites for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.api.composition import CompositionSpec
from crdkeeper.core.templates.compilation import compile_composition
from crdkeeper.core.templates.compiled import CompilationResult, CompiledComposition
from crdkeeper.core.templates.kinds import KnownKinds, TargetKind
from crdkeeper.core.templates.namespaces import Identity, identity_of
from crdkeeper.core.templates.observed import Observed, ObservedInFiles
from crdkeeper.core.templates.rendered import RenderedResource, Rendering
from crdkeeper.core.templates.rendering import render

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}
COMPOSITE = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "engine": TEXT,
                "replicas": NUMBER,
                "enabled": {"type": "boolean"},
                "names": TEXTS,
                "sizes": {"type": "array", "items": NUMBER},
                "limits": {"type": "object", "additionalProperties": TEXT},
            },
        },
        "status": {"type": "object", "properties": {"address": TEXT, "replicas": NUMBER}},
    },
}
SERVER = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "text": TEXT,
                "replicas": NUMBER,
                "port": {"x-kubernetes-int-or-string": True},
                "texts": TEXTS,
                "limits": {"type": "object", "additionalProperties": TEXT},
                "since": {"type": "string", "format": "date-time"},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"ready": NUMBER, "phase": TEXT}},
    },
}
NAMESPACED = TargetKind(COMPOSITE, True)
KINDS: KnownKinds = {
    ("example.com/v1", "Server"): TargetKind(SERVER, True),
    ("example.com/v1", "Region"): TargetKind(SERVER, False),
}
DATABASE: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Database",
    "metadata": {"name": "orders", "namespace": "shop"},
    "spec": {"engine": "postgres", "replicas": 2, "enabled": True, "names": ["a", "b"], "sizes": [1, 2]},
}


def server(name: str, *, called: str = "", **fields: Any) -> dict[str, Any]:
    """A resource of kind Server; `fields` are of its spec, or in capitals of the resource."""
    own = {key[0].lower() + key[1:]: each for key, each in fields.items() if key[0].isupper()}
    spec = {key: each for key, each in fields.items() if not key[0].isupper()}
    template = {
        "apiVersion": "example.com/v1",
        "kind": "Server",
        "metadata": {"name": called or "${composite.metadata.name}-" + name},
        "spec": spec,
    }
    return {"name": name, "template": template, **own}


def config_map(name: str, **data: Any) -> dict[str, Any]:
    """A resource of a kind whose schema is not known."""
    metadata = {"name": "${composite.metadata.name}-" + name}
    return {
        "name": name,
        "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data},
    }


def spec(resources: Sequence[Any], **fields: Any) -> CompositionSpec:
    """The spec of a Composition."""
    reference = {"apiVersion": "example.com/v1", "kind": "Database"}
    return CompositionSpec.model_validate(
        {"compositeTypeRef": reference, "resources": list(resources), **fields}
    )


def result(
    *resources: Any, composite: TargetKind = NAMESPACED, kinds: KnownKinds = KINDS, **fields: Any
) -> CompilationResult:
    """The result for a Composition of these resources."""
    return compile_composition(spec(resources, **fields), composite, kinds)


def problems(*resources: Any, composite: TargetKind = NAMESPACED, **fields: Any) -> list[str]:
    """What is wrong with a Composition, with the hints."""
    found = result(*resources, composite=composite, **fields)
    assert (found.composition is None) == bool(found.own_problems)
    assert bool(found.problems) == bool(found.own_problems or found.target_problems)
    return [f"{each} | {each.hint}" if each.hint else str(each) for each in found.problems]


def compiled(*resources: Any, **fields: Any) -> CompiledComposition:
    """A Composition without problems."""
    made = result(*resources, **fields)
    assert not made.problems, [str(each) for each in made.problems]
    assert made.composition is not None
    return made.composition


def rendered(
    *resources: Any,
    observed: Sequence[Any] | Observed = (),
    given: Mapping[str, Any] = DATABASE,
    **fields: Any,
) -> Rendering:
    """The rendering of a composite; a sequence of `observed` objects is found by their names."""
    there = observed if isinstance(observed, Observed) else in_files(*observed)
    return render(compiled(*resources, **fields), given, there)


def in_files(*objects: Any) -> Observed:
    """Objects that are found by their names."""
    return ObservedInFiles(external=by_identity(*objects))


def by_identity(*objects: Any) -> dict[Identity, Any]:
    """The objects by what identifies them."""
    return {identity: each for each in objects if (identity := identity_of(each)) is not None}


def named(rendering: Rendering) -> dict[str, RenderedResource]:
    """The resources by their names."""
    return {each.name: each for each in rendering.resources}


def summary(rendering: Rendering) -> dict[str, str]:
    """The state of each resource, and the reason."""
    return {each.name: f"{each.state.value} {each.why}".strip() for each in rendering.resources}
