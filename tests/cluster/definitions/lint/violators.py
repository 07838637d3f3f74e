"""CRDs from before a rule existed, or in states that only a cluster's own history creates.

No current API server accepts their creation, so the tests put them into etcd.
"""

from typing import Any

from tests.cluster.definitions.lint.variants import OPEN, RICH, Crd, definition, version

_UID = "0e7c5a9a-6c0b-4b52-9f0a-1d6c3f2b7a11"
_LIST_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def _old(crd: Crd, *, stored: tuple[str, ...] = ("v1",), accepted: Any = None, **metadata: Any) -> Crd:
    names = {"singular": "widget", "listKind": "WidgetList", **crd["spec"]["names"]}
    crd["spec"]["names"] = names
    crd["status"] = {
        "acceptedNames": {**names, **(accepted or {})},
        "conditions": [
            {"type": each, "status": "True", "lastTransitionTime": "2020-01-02T03:04:05Z", "reason": "R"}
            for each in ("NamesAccepted", "Established")
        ],
        "storedVersions": list(stored),
    }
    crd["metadata"] |= {"uid": _UID, "creationTimestamp": "2020-01-02T03:04:05Z", "generation": 1, **metadata}
    return crd


def _with(schema: Any, **spec: Any) -> Crd:
    root = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": schema}}}}
    return _old(definition(version("v1", root), version("v2", RICH), **spec))


def _webhook(versions: list[str], bundle: str) -> Any:
    client = {"url": "https://example.com/c", "caBundle": bundle}
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": versions},
    }


def _without_schema(**spec: Any) -> Crd:
    crd = _old(definition(version("v1", OPEN), version("v2", OPEN), **spec))
    for each in crd["spec"]["versions"]:
        del each["schema"]
    return crd


def _rule(text: str, message: str = "'fine'") -> Any:
    return {"x-kubernetes-validations": [{"rule": text, "messageExpression": message}]}


_TEXTS = {"type": "array", "items": {"type": "string"}}
_DEAR = "self.all(x, self.all(y, x != y))"
_NEW = "['a'].includes('a')"
_ITEM = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "nullable": True}}}
_MANY = [{"jsonPath": f".spec.x.k{i}"} for i in range(9)]
_PINNED = {"items": {"type": "string"}, "type": "array"}

VIOLATORS: tuple[Crd, ...] = (
    _with({"properties": {"a": {"minLength": 1}}}, preserveUnknownFields=True),
    _with({"$ref": "#/definitions/a", "nullable": True}, preserveUnknownFields=True),
    _with({"properties": {"a": {}}}),
    _with({"type": "string"}, preserveUnknownFields=True),
    _without_schema(preserveUnknownFields=True),
    _without_schema(),
    _with({"type": "any"}),
    _with({"type": "any", "items": {}}, preserveUnknownFields=True),
    _with({"type": "object", "default": {"y": 1}}),
    _with({"type": "object", "additionalProperties": {"type": "object", "default": {"y": 1}}}),
    _with({"type": "array", "items": _ITEM, _LIST_TYPE: "set"}),
    _with({"type": "array", "items": {**_PINNED, _LIST_TYPE: "set"}, _LIST_TYPE: "set"}),
    _with({"type": "array", "items": _ITEM, _LIST_TYPE: "map", _KEYS: ["a", "b"]}),
    _with({"type": "array", "items": {"type": "string", "nullable": True}, _LIST_TYPE: "set"}),
    _with({"type": "string"}, conversion=_webhook(["v2"], "")),
    _with({"type": "string"}, conversion=_webhook(["v1"], "eA==")),
    _with({**_TEXTS, **_rule(_DEAR)}),
    _with({**_TEXTS, **_rule("true", f"string({_DEAR})")}),
    _with({"type": "object", "properties": {"y": {**_TEXTS, "maxItems": 1500, **_rule(_DEAR)}}}),
    _with({"type": "string", **_rule(_NEW, f"string({_NEW})")}),
    _with({"type": "string", **_rule("self > 1", "nope")}),
    _old(
        definition(
            version("v1", {**RICH, "properties": {"spec": {"type": "object", "properties": {
                "x": {"type": "object", "additionalProperties": {"type": "string"}}}}}},
                selectableFields=_MANY),
            version("v2", RICH),
        )
    ),
    _old(definition(version("v1", RICH), version("v2", RICH)), stored=("v0", "v1", "v0")),
    _old(definition(version("v1", RICH)), stored=()),
    _old(definition(version("v1", RICH)), accepted={"listKind": "Widget", "shortNames": ["W!"]}),
    _old(definition(version("v1", OPEN), group="lint.k8s.io")),
    _old(
        definition(version("v1", RICH)),
        deletionTimestamp="2020-01-02T03:04:05Z",
        deletionGracePeriodSeconds=0,
        finalizers=["example.com/hold"],
    ),
)  # fmt: skip
