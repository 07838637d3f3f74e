"""Variants of CRDs: our small ones and, on request, those of a directory, each changed in a few places."""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from crdkeeper.core.documents.yamldocument import documents
from tests.cluster.definitions.lint.defaults import DEFAULTED
from tests.cluster.definitions.lint.expressions import EXPRESSIONS
from tests.cluster.definitions.lint.keywords import SMALL, VALUES, keyword_values

Crd = dict[str, Any]
CORPUS = "CRDKEEPER_CORPUS"
_BIGGEST = 120_000


def version(name: str, schema: Any, **fields: Any) -> Any:
    """An entry of spec.versions."""
    return {"name": name, "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}, **fields}


def definition(*versions: Any, group: str = "lint.example.com", **spec: Any) -> Crd:
    """A CRD that stores its first version."""
    versions[0]["storage"] = True
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": list(versions),
            **spec,
        },
    }


RICH = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "minimum": 0, "default": 1},
                "b": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 63},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "a": {"type": "integer"}},
                    },
                },
                "size": {
                    "x-kubernetes-int-or-string": True,
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "bounds": {
                    "type": "object",
                    "default": {"a": 2},
                    "properties": {"a": {"type": "integer", "maximum": 9}},
                },
                "limits": {
                    "type": "object",
                    "properties": {"a": {"type": "integer"}},
                    "oneOf": [{"required": ["a"]}, {"properties": {"a": {"minimum": 1}}}],
                },
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCALE = {"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.replicas"}}
APPROVAL = "api-approved.kubernetes.io"
_COLUMN = {"name": "A", "type": "integer", "jsonPath": ".spec.a"}
_WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"service": {"namespace": "default", "name": "converter", "path": "/convert"}},
        "conversionReviewVersions": ["v1"],
    },
}

BASES: tuple[Crd, ...] = (
    definition(
        version("v1", RICH, subresources={"status": {}, **_SCALE}, additionalPrinterColumns=[_COLUMN])
    ),
    definition(version("v1", RICH, selectableFields=[{"jsonPath": ".spec.name"}])),
    definition(version("v1", OPEN)),
    definition(version("v1", RICH), version("v2", RICH, deprecated=True), conversion=_WEBHOOK),
    definition(
        version("v1", RICH, subresources={"status": {}}, additionalPrinterColumns=[_COLUMN]),
        version("v1beta1", OPEN, selectableFields=[]),
    ),
    {
        **definition(version("v1", OPEN), group="lint.k8s.io"),
        "metadata": {"name": "widgets.lint.k8s.io", "annotations": {APPROVAL: "https://example.com/1"}},
    },
)  # fmt: skip

_ROOT_RULES = {"x-kubernetes-validations": [{"rule": "true"}]}
_RULED: Any = {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'x'"}]}


def _spec(schema: Any) -> Crd:
    return definition(version("v1", {"type": "object", "properties": {"spec": schema}}))


ODD: tuple[Crd, ...] = (
    _spec({"type": "object", "properties": {"a": {"type": "string"}}, "items": _RULED, **_ROOT_RULES}),
    _spec({"type": "object", "properties": {"a": {"type": "string"}}, "items": _RULED}),
    _spec({"type": "object", "properties": {"a": {"type": "string", "items": _RULED, **_ROOT_RULES}}}),
    _spec({"type": "object", "additionalProperties": {"type": "integer"}, "items": _RULED, **_ROOT_RULES}),
    _spec(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "items": {"type": "object", "properties": {"a b": _RULED}},
            **_ROOT_RULES,
        }
    ),
)
"""CRDs with rules below items of something other than a list: CEL has no type there, or another one."""

URLS = (
    "https://example.com/c", "http://a.com", "https://u@h/x?q=1#f", "https://", "%", "https:x", "//a/b",
    "a:b:c", "https://a b/", "https://a:b@c:80/%zz", "https://x:y", "HTTPS://X.example.com:443/é",
    "https://[::1]:9/", "https://[1.2.3.4]", "https://[::1", "https://a[b", ":x", "1:x", "/x",
    "https://%41/", "https://a/?", "?", "https://ü:p%20w@h/", "https://a%zz@h", "https://a^b@h",
    "https://a/b#%z", "https://a\x7f", " https://a", "x", "x/y:z", "https://1:2:3", "http://a/%", "*",
    "https://a?b?c", "https://<x>/", "https://user:p@ss@h/a b",
)  # fmt: skip
_OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True}
_BAD_OWNERS = (
    [_OWNER, {**_OWNER, "name": "q"}],
    [{**_OWNER, "kind": "Event"}],
    [{**_OWNER, "apiVersion": "a/b/c"}, {**_OWNER, "apiVersion": "a/", "controller": False}],
)
_BUNDLES: tuple[Any, ...] = (
    "",
    "eA==",
    "LS0tLS1CRUdJTiB4",
    "%",
    "eA",
    "e\nA==",
    [],
    [120],
    [0, None],
    [256],
    [-1],
    [1.5],
    ["a"],
    [[]],
)

_NAMES = ("widgets", "Widget", "", "a" * 64, "-a", "widgets.x", "w_x", "WidgetList")
_PATHS = (
    ".spec.a", ".status.replicas", "", "spec.a", ".", ".spec", ".spec.b[0]", ".metadata.name", ".nope",
    ".spec.name", ".spec.labels.x", ".spec..a", "['spec']",
)  # fmt: skip
_VERSIONS = ("v1", "v2", "V1", "", "1", "v1beta1")
_TEXTS = ("text", "", "a\tb", "é" * 200, "\u200b")

Spots = tuple[tuple[tuple[str, ...], tuple[Any, ...]], ...]
"""Where to put which values; "*" is any item of a list."""

SPOTS: Spots = (
    (("metadata", "name"), ("widgets.lint.example.com", "other.example.com", "Up.example.com", "x" * 260)),
    (("metadata", "name"), ("",)),
    (("metadata", "labels"), ({"a": "b"}, {"a b": "c"}, {"a/b/c": "!"}, {"/x": "y"}, {"x/": "y" * 64})),
    (("metadata", "annotations"), ({"A": "b"}, {"a b": "c"}, {"UPPER/" + "x" * 64: ""})),
    (("metadata", "annotations"), tuple({APPROVAL: each} for each in (*URLS, "unapproved, it is a test"))),
    (("metadata", "generateName"), ("widgets.", "w", "Up-", "x" * 300, "a/b", "-")),
    (
        ("metadata", "finalizers"),
        ([], ["example.com/a"], ["a b", "x/y/z"], ["orphan", "foregroundDeletion"], ["orphan"]),
    ),
    (("metadata", "ownerReferences"), ([], [{}], [_OWNER], [_OWNER, _OWNER], *_BAD_OWNERS)),
    (("metadata", "creationTimestamp"), (None, "2026-01-02T03:04:05Z", "yesterday", "2026-02-30T00:00:00Z")),
    (("status",), ({}, None, {"conditions": [], "storedVersions": ["v9"]}, {"storedVersions": "v1"})),
    (("spec", "group"), ("lint.example.com", "example", "", "Bad.example.com", "x.k8s.io", "kubernetes.io")),
    (("spec", "scope"), ("Cluster", "", "Everywhere")),
    (("spec", "preserveUnknownFields"), (True, False)),
    *((("spec", "names", key), _NAMES) for key in ("plural", "singular", "kind", "listKind")),
    (("spec", "names", "shortNames"), ([], ["w"], ["w", "W!"], [""])),
    (("spec", "names", "categories"), (["all"], ["All"], None)),
    (("spec", "versions", "*", "name"), _VERSIONS),
    (("spec", "versions", "*", "served"), (True, False)),
    (("spec", "versions", "*", "storage"), (True, False)),
    (("spec", "versions", "*", "deprecated"), (True, False)),
    (("spec", "versions", "*", "deprecationWarning"), _TEXTS),
    (("spec", "versions", "*", "schema"), (None, {}, {"openAPIV3Schema": OPEN}, {"openAPIV3Schema": {}})),
    (("spec", "versions", "*", "subresources"), (None, {}, {"status": {}}, {"scale": {}}, _SCALE)),
    *(
        (("spec", "versions", "*", "subresources", "scale", key), _PATHS)
        for key in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    ),
    (("spec", "versions", "*", "additionalPrinterColumns"), ([], [_COLUMN], [{}], [_COLUMN, {"name": "B"}])),
    (("spec", "versions", "*", "additionalPrinterColumns", "*", "type"), ("string", "float", "")),
    (("spec", "versions", "*", "additionalPrinterColumns", "*", "format"), ("int32", "nonsense", "")),
    (("spec", "versions", "*", "additionalPrinterColumns", "*", "jsonPath"), _PATHS),
    (
        ("spec", "versions", "*", "selectableFields"),
        (
            [{"jsonPath": ".spec.name"}, {"jsonPath": ".spec.name"}],
            [{"jsonPath": f".spec.labels.k{i}"} for i in range(9)],
            [{}],
            *([{"jsonPath": path}] for path in _PATHS),
        ),
    ),
    (("spec", "conversion"), (None, {}, {"strategy": "None"}, {"strategy": "Webhook"}, _WEBHOOK)),
    (("spec", "conversion", "strategy"), ("None", "Webhook", "", "<x>")),
    (("spec", "conversion", "webhook"), (None, {}, {"conversionReviewVersions": ["v1"]})),
    (
        ("spec", "conversion", "webhook", "conversionReviewVersions"),
        ([], ["v1", "v1"], ["v2"], ["V!", "v1"], ["v1beta1"]),
    ),
    (
        ("spec", "conversion", "webhook", "clientConfig"),
        (
            {},
            {"url": "https://example.com/x", "service": {}},
            *(
                {"url": url}
                for url in URLS
            ),
        ),
    ),
    (("spec", "conversion", "webhook", "clientConfig", "caBundle"), _BUNDLES),
    (("spec", "conversion", "webhook", "clientConfig", "service"), ({}, {"name": "n"}, {"namespace": "n"})),
    (("spec", "conversion", "webhook", "clientConfig", "service", "port"), (0, 443, 70000)),
    (
        ("spec", "conversion", "webhook", "clientConfig", "service", "path"),
        ("/", "", "x", "//", "/a//b", "/A_b/"),
    ),
)  # fmt: skip


def corpus(biggest: int | None = _BIGGEST) -> tuple[Crd, ...]:
    """The CRDs of the configured directory, in files up to a size; none without it."""
    folder = os.environ.get(CORPUS)
    if not folder:
        return ()
    found: list[Crd] = []
    for file in sorted(Path(folder).rglob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        if biggest is None or len(text) <= biggest:
            found.extend(each.value for each in documents(text) if each.value["spec"].get("versions"))
    return tuple(found)


@st.composite
def variants(draw: st.DrawFn, bases: tuple[Crd, ...]) -> Crd:
    """A CRD with some changes; sometimes with a schema of its own."""
    crd = copy.deepcopy(draw(st.sampled_from(bases)))
    if draw(st.integers(0, 5)) == 0:
        # Variants may share what a strategy draws.
        schema = {"type": "object", **copy.deepcopy(draw(SMALL))}
        crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    for _ in range(draw(st.sampled_from((0, 1, 1, 1, 1, 2, 3)))):
        if draw(st.integers(0, 2)):
            change_schema(draw, crd)
        else:
            change_spot(draw, crd, SPOTS)
    return crd


def change_schema(draw: st.DrawFn, crd: Crd) -> None:
    """Sets or removes a keyword somewhere in the schemas."""
    nodes = [node for each in crd["spec"].get("versions") or () for node in _nodes(_root(each))]
    if not nodes:
        return
    node = draw(st.sampled_from(nodes))
    if draw(st.integers(0, 7)) == 0:
        properties = node.get("properties")
        known = properties if isinstance(properties, dict) else {}
        node["properties"] = {**known, "defaulted": copy.deepcopy(draw(DEFAULTED))}
        return
    if node and draw(st.integers(0, 4)) == 0:
        del node[draw(st.sampled_from(sorted(node)))]
        return
    if draw(st.integers(0, 4)) == 0:
        node["x-kubernetes-validations"] = copy.deepcopy(draw(EXPRESSIONS))
        return
    keyword, value = draw(keyword_values())
    node[keyword] = copy.deepcopy(value)


def _root(entry: Any) -> Any:
    schema = entry.get("schema") if isinstance(entry, dict) else None
    return schema.get("openAPIV3Schema") if isinstance(schema, dict) else None


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(schema, dict):
        return
    yield schema
    for key in ("properties", "items", "additionalProperties", "not", "anyOf", "allOf", "oneOf"):
        below = schema.get(key)
        if key == "properties" and isinstance(below, dict):
            for each in below.values():
                yield from _nodes(each)
        elif isinstance(below, list):
            for each in below:
                yield from _nodes(each)
        else:
            yield from _nodes(below)


def change_spot(draw: st.DrawFn, crd: Crd, spots: Spots) -> None:
    """Puts another value in one of the places."""
    path, values = draw(st.sampled_from(spots))
    value = draw(VALUES) if draw(st.integers(0, 40)) == 0 else draw(st.sampled_from(values))
    at: Any = crd
    for i, step in enumerate(path[:-1]):
        if step == "*":
            if not isinstance(at, list) or not at:
                return
            at = draw(st.sampled_from(at))
        elif isinstance(at, dict):
            fresh: Any = [{}] if path[i + 1] == "*" else {}
            at[step] = at.get(step) or fresh
            at = at[step]
    if isinstance(at, dict):
        at[path[-1]] = copy.deepcopy(value)
