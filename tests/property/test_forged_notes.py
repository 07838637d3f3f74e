"""Whatever an annotation claims to keep aside: the object remains the one that was written.

Each example reads an object with forged notes at both other versions, and writes it back: 8,000 reads with
HYPOTHESIS_PROFILE=long. The forgeries are the differences to another object that is valid at the version
where they are read: so they name fields that exist, and `is` is the result of the rules.
"""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crdkeeper.core.conversion.fitting import Fitting
from crdkeeper.core.conversion.keptaside import differences, written
from crdkeeper.core.conversion.notes import PREFIX, compared, without_notes
from tests.property.conversions import Drawn, conversions
from tests.property.test_conversion import VERSIONS, served

_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_JUNK: Any = st.recursive(
    st.none() | st.booleans() | _INTEGERS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def forgeries(draw: st.DrawFn, wanted: Any, shown: Any, schema: Any) -> list[dict[str, Any]]:
    """Entries by which `shown` would become `wanted`, some of them changed, in any order."""
    entries = differences(wanted, shown, schema)
    for each in entries:
        match draw(st.integers(0, 5)):
            case 0:
                each["was"] = draw(_JUNK)
            case 1:
                each["at"] = [*each["at"], draw(st.text(max_size=3) | _JUNK)]
            case 2 if len(each["at"]) > 1:
                each["at"] = each["at"][:-1]
    return draw(st.permutations(entries))


@given(conversions(), st.data())
def test_what_is_forged_changes_nothing_that_was_written(drawn: Drawn, data: st.DataObject) -> None:
    for source in VERSIONS:
        value = served(drawn.objects[source])
        others = [each for each in VERSIONS if each != source]
        honest = {each: served(drawn.conversion.convert(value, each)) for each in others}
        notes = {}
        for each in others:
            shown = without_notes(honest[each])
            entries = data.draw(forgeries(served(drawn.objects[each]), shown, drawn.schemas[each]))
            notes[PREFIX + each] = written(entries)
        metadata = value["metadata"]
        forged = {
            **value,
            "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **notes}},
        }
        for target in others:
            made = served(drawn.conversion.convert(forged, target))
            _check_identity(made, honest[target])
            again = served(drawn.conversion.convert(made, source))
            changed = differences(compared(value), compared(again), None)
            assert not changed, f"{changed} by {json.dumps(notes)}: {made} from {value}, rules {drawn.spec}"
            fitting = Fitting(drawn.schemas[target])
            before, after = fitting.violations(honest[target]), fitting.violations(made)
            assert before is not None
            assert after is not None
            assert after <= before


def _check_identity(made: Any, honest: Any) -> None:
    assert {key: made[key] for key in ("apiVersion", "kind")} == {
        key: honest[key] for key in ("apiVersion", "kind")
    }
    assert made["metadata"]["name"] == honest["metadata"]["name"]
    assert made["metadata"].keys() <= {"name", "annotations", "labels"}
