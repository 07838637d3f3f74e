"""Whatever the schema: the CRD of a composite has all of it, and a rule that is proposed means the same."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.composition.asrule import counting_rule, junctor_rule
from tests.cluster.composition.schemas import RESERVED, composite_definition, whole_schemas

Json = Any

NAMES = ("a", "b", "c-d")
OBJECT: Json = {
    "type": "object",
    "properties": {
        name: {"type": "object", "properties": {each: {"type": "integer"} for each in NAMES}}
        for name in NAMES
    },
}


@given(whole_schemas())
def test_every_keyword_of_the_schema_is_in_the_definition(schema: Json) -> None:
    before = copy.deepcopy(schema)
    judged = accept(composite_definition("any.example.com", {"v1": schema}))
    assert schema == before
    assert judged.crd is not None
    made = judged.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    _lacks_nothing(schema, made, ())


def _lacks_nothing(given: Json, made: Json, path: tuple[Any, ...]) -> None:
    """What is made may only have more, and only where it is to have more."""
    if path in ADDED and isinstance(given, dict):
        assert set(made) - set(given) <= ADDED[path]
        for key, each in given.items():
            _lacks_nothing(each, made[key], (*path, key))
    elif path == NAME:
        assert made == {**given, "maxLength": min(63, given["maxLength"])}
    elif path == DEFAULT:
        assert made in (given, {**given, "observedGeneration": -1})
    else:
        assert made == given, path


NAME = ("properties", "metadata", "properties", "name")
DEFAULT = ("properties", "status", "default")
ADDED: dict[tuple[Any, ...], set[str]] = {
    (): {"properties"},
    ("properties",): {"metadata", "spec", "status"},
    ("properties", "metadata"): {"properties"},
    ("properties", "metadata", "properties"): {"name"},
    ("properties", "spec"): {"properties"},
    ("properties", "spec", "properties"): set(RESERVED["spec"]),
    ("properties", "status"): {"properties", "default"},
    ("properties", "status", "properties"): set(RESERVED["status"]),
}


@st.composite
def restrictions(draw: st.DrawFn, depth: int = 0) -> Json:
    """What a branch of a junctor says, as far as it can be a rule."""
    found: Json = {}
    if draw(st.booleans()):
        found["required"] = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
    if depth < 2 and draw(st.booleans()):
        found["properties"] = {draw(st.sampled_from(NAMES)): draw(restrictions(depth + 1))}
    if depth < 2 and draw(st.integers(0, 3)) == 0:
        found |= draw(junctors(depth + 1))
    return found


@st.composite
def junctors(draw: st.DrawFn, depth: int = 0) -> Json:
    keyword = draw(st.sampled_from(("allOf", "anyOf", "oneOf", "not")))
    if keyword == "not":
        return {keyword: draw(restrictions(depth))}
    return {keyword: draw(st.lists(restrictions(depth), min_size=1, max_size=3))}


VALUES = st.dictionaries(
    st.sampled_from(NAMES), st.dictionaries(st.sampled_from(NAMES), st.just(1), max_size=3), max_size=3
)


def _accepts(schema: Json, value: Json) -> bool:
    report = Report()
    decoded = SCHEMA.decode({"type": "object", "properties": {"spec": schema}}, root("schema"), report)
    assert not report.violations
    admitted = ObjectSchema.of(decoded).admit({"metadata": {"name": "x"}, "spec": value})
    assert not admitted.unchecked
    assert all("compile" not in each.message for each in admitted.violations), admitted.violations
    return not admitted.violations


@given(junctors(), st.lists(VALUES, min_size=1, max_size=5))
def test_a_rule_for_a_junctor_means_the_same(junctor: Json, objects: list[Json]) -> None:
    ((keyword, value),) = junctor.items()
    rule = junctor_rule(keyword, value, OBJECT["properties"])
    if rule is None:
        return  # It is too long, or about fields that are none.
    for each in objects:
        with_rule = _accepts({**OBJECT, "x-kubernetes-validations": [{"rule": rule}]}, each)
        assert with_rule is _accepts({**OBJECT, **junctor}, each), rule


@given(st.sampled_from(("minProperties", "maxProperties")), st.integers(0, 3), VALUES)
def test_a_rule_for_a_number_of_fields_means_the_same(keyword: str, limit: int, value: Json) -> None:
    rule = counting_rule(keyword, limit, NAMES)
    with_rule = _accepts({**OBJECT, "x-kubernetes-validations": [{"rule": rule}]}, value)
    assert with_rule is _accepts({**OBJECT, keyword: limit}, value)
