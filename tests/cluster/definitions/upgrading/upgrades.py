"""Schemas before and after: what authors do to a field from one release to the next, harmless or not."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from crdkeeper.apiserver.definitions.create import check_creation
from tests.cluster.definitions.lint.keywords import keyword_values
from tests.cluster.objects.schemas import schemas
from tests.cluster.objects.values import values

Json = Any
Draw = st.DrawFn

PRESERVE = "x-kubernetes-preserve-unknown-fields"
VALIDATIONS = "x-kubernetes-validations"
INT_OR_STRING = "x-kubernetes-int-or-string"
_LIMITS = (
    "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maximum", "minimum",
)  # fmt: skip
_RESTRICTIONS = (
    *_LIMITS, "pattern", "format", "enum", "multipleOf", "anyOf", "oneOf", "allOf", "not", "nullable",
    "required", "default", VALIDATIONS, "exclusiveMaximum", "exclusiveMinimum", "additionalProperties",
    PRESERVE, "x-kubernetes-list-type", "x-kubernetes-embedded-resource", "x-kubernetes-map-type",
)  # fmt: skip
_NEW = ("a", "b", "c", "fresh", "x-y")


@st.composite
def upgrades(draw: Draw) -> tuple[Json, Json]:
    """The schema of one field before and after."""
    old = copy.deepcopy(draw(schemas()))
    if not is_valid(old):
        return old, old
    for node in list(_nodes(old)):
        if draw(st.integers(0, 3)) == 0:
            _add_rule(draw, node)
    new = copy.deepcopy(old)
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        _change_somewhere(draw, new)
        if not is_valid(new):
            break
    return old, new


def _change_somewhere(draw: Draw, schema: Json) -> None:
    """Makes one change, at one of the fields where it is possible."""
    change = draw(st.sampled_from(_CHANGES))
    before = copy.deepcopy(schema)
    for node in draw(st.permutations(list(_nodes(schema)))):
        change(draw, node)
        if schema != before:
            return


def is_valid(schema: Json) -> bool:
    """Whether the API server accepts a CRD with this schema."""
    return not check_creation(definition(schema)).violations


def definition(schema: Json) -> Json:
    """A CRD with this schema for the field `spec.field`."""
    spec = {"type": "object", "properties": {"field": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "samples", "kind": "Sample"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


def _nodes(schema: Json) -> Iterator[Json]:
    yield schema
    for each in (schema.get("properties") or {}).values():
        yield from _nodes(each)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _nodes(schema[key])


def _add_rule(draw: Draw, node: Json) -> None:
    names = [each for each in node.get("properties") or {} if each.isalpha() and each != "metadata"]
    rules = {
        "string": ["self != 'a'", "self.size() < 3"],
        "integer": ["self > 0", "self != 3"],
        "number": ["self < 5.0"],
        "array": ["self.size() < 3"],
        "object": [f"!has(self.{name})" for name in names]
        + ["!has(self.fresh)", "has(self.a) || !has(self.b)"],
    }
    choice = rules.get(node.get("type", ""))
    if choice and INT_OR_STRING not in node:
        node[VALIDATIONS] = [{"rule": draw(st.sampled_from(choice))}]


def _remove_restriction(draw: Draw, node: Json) -> None:
    there = [each for each in _RESTRICTIONS if each in node]
    if there:
        del node[draw(st.sampled_from(there))]


def _move_limit(draw: Draw, node: Json) -> None:
    there = [each for each in _LIMITS if each in node]
    if there:
        node[draw(st.sampled_from(there))] += draw(st.sampled_from((1, -1, 3)))


def _add_field(draw: Draw, node: Json) -> None:
    if node.get("type") != "object" or "additionalProperties" in node:
        return
    name = draw(st.sampled_from(_NEW))
    properties = node.setdefault("properties", {})
    if name not in properties:
        properties[name] = copy.deepcopy(draw(schemas()))
        if draw(st.booleans()):
            properties[name]["default"] = draw(values(properties[name]))
        if draw(st.integers(0, 4)) == 0:
            node["required"] = [*node.get("required", ()), name]


def _remove_field(draw: Draw, node: Json) -> None:
    names = sorted(node.get("properties") or {})
    if names:
        name = draw(st.sampled_from(names))
        del node["properties"][name]
        if name in node.get("required", ()) and draw(st.booleans()):
            node["required"] = [each for each in node["required"] if each != name]


def _change_required(draw: Draw, node: Json) -> None:
    names = sorted(node.get("properties") or {})
    if names:
        required = set(node.get("required") or ())
        node["required"] = sorted(required ^ {draw(st.sampled_from(names))})


def _change_enum(draw: Draw, node: Json) -> None:
    enum = node.get("enum") or []
    if node.get("type") == "boolean" and not enum:
        node["enum"] = [True, False]
    elif enum and draw(st.booleans()):
        node["enum"] = enum[1:] or enum
    else:
        node["enum"] = [*enum, draw(values({**node, "enum": []}))]


def _widen_type(draw: Draw, node: Json) -> None:
    if node.get("type") in ("integer", "string") and not node.get("enum"):
        if node["type"] == "integer" and draw(st.booleans()):
            node["type"] = "number"
        else:
            del node["type"]
            node[INT_OR_STRING] = True


def _drop_type(draw: Draw, node: Json) -> None:
    if node.pop("type", None) is not None:
        node[PRESERVE] = True
        if draw(st.booleans()):
            for key in ("properties", "items", "additionalProperties", VALIDATIONS):
                node.pop(key, None)


def _make_map(draw: Draw, node: Json) -> None:
    """A map of anything, which is not the same as unknown fields that are preserved."""
    if node.get("type") == "object":
        for key in ("properties", "required", PRESERVE):
            node.pop(key, None)
        node["additionalProperties"] = True


def _add_ruled_field(draw: Draw, node: Json) -> None:
    """A field below another one, which may be absent, and a rule around both."""
    inner = {
        name: each
        for name, each in (node.get("properties") or {}).items()
        if name.isalpha() and name != "metadata" and each.get("type") == "object"
        and "fresh" not in each.get("properties", {}) and "additionalProperties" not in each
    }  # fmt: skip
    if inner:
        name = draw(st.sampled_from(sorted(inner)))
        inner[name].setdefault("properties", {})["fresh"] = {"type": "string"}
        tested = f"!has(self.{name}) || " if draw(st.booleans()) else ""
        node[VALIDATIONS] = [{"rule": f"{tested}!has(self.{name}.fresh) || self.{name}.fresh == 'x'"}]


def _switch(keyword: str) -> Callable[[Draw, Json], None]:
    def change(draw: Draw, node: Json) -> None:
        if node.pop(keyword, None) is None:
            node[keyword] = True

    return change


def _change_default(draw: Draw, node: Json) -> None:
    node["default"] = draw(values(node))


def _change_junctor(draw: Draw, node: Json) -> None:
    keyword = draw(st.sampled_from(("anyOf", "oneOf", "allOf")))
    there = node.get(keyword) or []
    if there and draw(st.booleans()):
        node[keyword] = there[1:]
    else:
        node[keyword] = [*there, {draw(st.sampled_from(("minLength", "maximum", "minProperties"))): 1}]


def _change_anything(draw: Draw, node: Json) -> None:
    keyword, value = draw(keyword_values())
    node[keyword] = copy.deepcopy(value)


_CHANGES: tuple[Callable[[Draw, Json], None], ...] = (
    _remove_restriction, _remove_restriction, _move_limit, _move_limit, _add_field, _add_field, _add_field,
    _remove_field, _change_required, _change_enum, _widen_type, _switch("nullable"), _switch(PRESERVE),
    _change_default, _change_junctor, _add_rule, _change_anything, _drop_type, _make_map, _add_ruled_field,
)  # fmt: skip
