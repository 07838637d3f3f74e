"""Whatever the schemas and rules: an object that comes back from other versions is what it was."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.core.conversion.keptaside import same
from tests.property.conversions import Drawn, conversions

VERSIONS = ("v1", "v2", "v3")


def served(value: Any) -> Any:
    """An object as the API server gives it out: maps in the order of their keys, 1.0 as 1."""
    if isinstance(value, dict):
        return {key: served(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return list(map(served, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


@given(conversions(), st.data())
def test_every_way_home_loses_nothing(drawn: Drawn, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(VERSIONS))
    value = served(drawn.objects[start])
    before = json.dumps(value)
    way = data.draw(st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=4))
    made = value
    for version in (*way, start):
        made = served(drawn.conversion.convert(made, version))
    made["metadata"] = {key: each for key, each in made["metadata"].items() if key != "annotations"}
    assert same(made, value), f"by {way}: {made} from {value}, rules {drawn.spec}"
    assert json.dumps(value) == before, "the object itself was changed"
