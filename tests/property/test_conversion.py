"""With any schemas and rules: an object that comes back from other versions is unchanged.

Each example makes three round trips, one from each version: 12,000 with HYPOTHESIS_PROFILE=long.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.core.conversion.keptaside import differences
from crdkeeper.core.conversion.notes import without_notes
from tests.property.conversions import Drawn, conversions

VERSIONS = ("v1", "v2", "v3")


def served(value: Any) -> Any:
    """An object as returned by the API server: maps in the order of their keys, 1.0 as 1."""
    if isinstance(value, dict):
        return {key: served(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return list(map(served, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


@given(conversions(), st.data())
def test_every_way_home_loses_nothing(drawn: Drawn, data: st.DataObject) -> None:
    for start in VERSIONS:
        way = data.draw(st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=4))
        value = served(drawn.objects[start])
        before = json.dumps(value)
        made = value
        for version in (*way, start):
            made = served(drawn.conversion.convert(made, version))
        changed = differences(value, without_notes(made), None)
        fields = ", ".join(".".join(map(str, each["at"])) for each in changed)
        assert not changed, f"{fields} changed on the way by {way}: {made} from {value}, rules {drawn.spec}"
        assert json.dumps(value) == before, "the object itself was changed"
