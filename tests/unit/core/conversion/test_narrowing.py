"""Objects generated from a narrowed schema can be converted: each goes to the other version."""

from typing import Any

import pytest

from crdkeeper.core.conversion.narrowing import narrowed
from crdkeeper.core.conversion.notes import without_notes
from crdkeeper.core.conversion.samples import samples
from tests.unit.core.conversion.samples import (
    INTEGER,
    STRING,
    at,
    compiled,
    crd,
    list_of,
    map_of,
    obj,
    spec_of,
)
from tests.unit.core.conversion.test_rules import BOTH_WAYS
from tests.unit.core.conversion.test_strategies import STRATEGIES

CASES = {
    **{name: each[:3] for name, each in STRATEGIES.items()},
    **{name: each[:3] for name, each in BOTH_WAYS.items()},
}
NEEDS_ITS_OWN_VALUES = ("cel", "listItem (computed)", "delete", "constant")


@pytest.mark.parametrize(
    ("hub", "spoke", "rules"),
    [each for name, each in CASES.items() if name not in NEEDS_ITS_OWN_VALUES],
    ids=[name for name in CASES if name not in NEEDS_ITS_OWN_VALUES],
)
def test_each_object_can_be_converted_and_comes_back(hub: Any, spoke: Any, rules: str) -> None:
    schemas = {"v1": crd(hub), "v2": crd(spoke)}
    spec = spec_of({"v2": rules})
    conversion = compiled(hub, {"v2": (spoke, rules)})
    for version, other in (("v1", "v2"), ("v2", "v1")):
        for each in samples(narrowed(spec, schemas, version), 30):
            value = {**at(version, {}), **each} if "spec" in each else at(version, {})
            assert without_notes(conversion.convert(conversion.convert(value, other), version)) == value


def test_an_enum_keeps_what_the_rule_knows() -> None:
    ours = {"type": "string", "enum": ["30s", "soon"]}
    spec = spec_of({"v2": "- {hub: spec.a, spoke: spec.b, duration: s}"})
    schemas = {"v1": crd(obj(a=ours)), "v2": crd(obj(b=INTEGER))}
    assert narrowed(spec, schemas, "v1")["properties"]["spec"]["properties"]["a"]["enum"] == ["30s"]
    assert narrowed(spec, schemas, "v2") == schemas["v2"]


def test_the_rules_of_all_spokes_narrow_the_hub() -> None:
    hub = obj(a=STRING, b=map_of(obj(c=STRING)))
    spec = spec_of(
        {
            "v2": "- {hub: spec.a, spoke: spec.a, cast: true}",
            "v3": "- {hub: spec.b, spoke: spec.b, key: name, each: [{hub: c, spoke: c, quantity: Mi}]}",
        }
    )
    others = {"v2": crd(obj(a=INTEGER)), "v3": crd(obj(b=list_of(obj(name=STRING, c=INTEGER))))}
    found = narrowed(spec, {"v1": crd(hub), **others}, "v1")["properties"]["spec"]["properties"]
    assert "8080" in found["a"]["enum"]
    assert "1Gi" in found["b"]["additionalProperties"]["properties"]["c"]["enum"]


def test_rules_that_name_nothing_narrow_nothing() -> None:
    rules = "- {hub: spec.x.y, spoke: spec..b, cast: true}\n- {hub: spec.a, spoke: 'a[', duration: s}"
    schemas = {"v1": crd(obj(b=STRING)), "v2": crd(obj(b=STRING))}
    assert narrowed(spec_of({"v2": rules}), schemas, "v1") == schemas["v1"]
