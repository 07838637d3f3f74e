"""Whole schemas of custom resources, drawn or of the corpus, and CompositeResourceDefinitions with them."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.cluster.definitions.lint.variants import corpus
from tests.cluster.objects.schemas import schemas

Json = Any

KIND = "Sample"
PLURAL = "samples"
RESERVED = {"spec": ("crdkeeper",), "status": ("crdkeeper", "conditions", "observedGeneration")}
_ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OPEN: Json = {**_ANYTHING, "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
"""A schema that drops nothing."""
_NAMES = ("a", "b", "c-d")
_OF_SPEC: tuple[Json, ...] = (
    {"required": ["a"]},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"anyOf": [{"required": ["a"]}, {"not": {"required": ["b"]}}]},
    {"nullable": True},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"default": {}},
    {"x-kubernetes-validations": [{"rule": "has(self.a) || has(self.b)", "message": "a or b"}]},
    {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    {"description": "What is wanted."},
    {"x-kubernetes-map-type": "granular"},
    {"maxProperties": 1},
    {"minProperties": 1},
    {"x-kubernetes-map-type": "atomic"},
    {"enum": [{"a": 1}]},
    {"anyOf": [{"maxProperties": 1}, {"required": ["a"]}]},
    {"additionalProperties": {"type": "string"}, "properties": None},
    {"type": None, "x-kubernetes-preserve-unknown-fields": True},
)
_OF_STATUS: tuple[Json, ...] = (
    {"required": ["a"]},
    {"default": {"b": 1}},
    {"nullable": True},
    {"x-kubernetes-validations": [{"rule": "has(self.a)"}]},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"maxProperties": 2},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
)
_OF_ROOT: tuple[Json, ...] = (
    {"required": ["spec"]},
    {"x-kubernetes-validations": [{"rule": "has(self.spec)", "message": "needs a spec"}]},
    {"x-kubernetes-validations": [{"rule": "!has(self.status) || has(self.status.a)"}]},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"description": "A sample."},
    {"oneOf": [{"required": ["spec"]}, {"required": ["other"]}]},
    {"not": {"properties": {"spec": {"required": ["a"]}}}},
    {"maxProperties": 4},
    {"required": ["status"]},
)


@st.composite
def whole_schemas(draw: st.DrawFn) -> Json:
    """The schema of a kind with spec and status; the API server refuses some."""
    root: Json = {"type": "object", "properties": {}}
    for name, choices in (("spec", _OF_SPEC), ("status", _OF_STATUS)):
        if draw(st.integers(0, 9)):
            properties = {each: copy.deepcopy(draw(schemas())) for each in _NAMES if draw(st.integers(0, 3))}
            root["properties"][name] = _with(draw, {"type": "object", "properties": properties}, choices)
    if draw(st.integers(0, 3)) == 0:
        root["properties"]["other"] = copy.deepcopy(draw(schemas()))
    if draw(st.integers(0, 7)) == 0:
        limits = {"type": "string", "maxLength": draw(st.sampled_from((10, 100))), "pattern": "^[a-z0-9-]+$"}
        root["properties"]["metadata"] = {"type": "object", "properties": {"name": limits}}
    return _with(draw, root, _OF_ROOT)


def _with(draw: st.DrawFn, schema: Json, choices: tuple[Json, ...]) -> Json:
    for change in draw(st.lists(st.sampled_from(choices), max_size=2)) if draw(st.booleans()) else ():
        schema = {key: each for key, each in {**schema, **copy.deepcopy(change)}.items() if each is not None}
    return schema


def corpus_schemas() -> Iterator[Json]:
    """The schemas of all versions in the corpus."""
    for crd in corpus(None):
        for version in crd["spec"]["versions"]:
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                yield schema


def definition(group: str, schemas: dict[str, Json]) -> Json:
    """The CRD with these schemas by version, as written by a person; the first version is stored."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": KIND, "plural": PLURAL},
            "scope": "Cluster",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": i == 0,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
                for i, (name, schema) in enumerate(schemas.items())
            ],
        },
    }


def composite_definition(group: str, schemas: dict[str, Json]) -> Json:
    """The CompositeResourceDefinition of the same API."""
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": KIND, "plural": PLURAL},
            "scope": "Cluster",
            "versions": [
                {"name": name, "referenceable": i == 0, "schema": {"openAPIV3Schema": schema}}
                for i, (name, schema) in enumerate(schemas.items())
            ],
        },
    }


def users_part(value: Json) -> Json:
    """An object without what every composite has besides, and without what the server sets."""
    found = copy.deepcopy(value)
    for part, names in RESERVED.items():
        if isinstance(found.get(part), dict):
            found[part] = {key: each for key, each in found[part].items() if key not in names}
    found.pop("apiVersion", None)
    metadata = found.pop("metadata", {})
    kept = {key: metadata[key] for key in ("name", "labels", "annotations", "finalizers") if key in metadata}
    return {**found, "metadata": kept}
