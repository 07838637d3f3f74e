"""Notes fit on every object, and foreign labels or annotations have no effect."""

import random
import re
from typing import Any

import pytest

from crdkeeper.core.conversion.notes import ALL_BYTES, MAX_BYTES, PREFIX, is_note, with_note, without_notes
from crdkeeper.core.conversion.objects import Conversion, ConversionTally
from tests.unit.core.conversion.samples import STRING, at, compiled, errors, obj

LABELS = "v1." + PREFIX
# What ValidateLabels allows.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]{1,63}")
VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
FULL = {"full": "x" * (ALL_BYTES - 4)}


@pytest.fixture(scope="module")
def conversion() -> Conversion:
    rules = "- {hub: spec.a, aside: true}\n- {hub: spec.b, spoke: spec.c}"
    return compiled(obj(a=STRING, b=STRING), {"v2": (obj(c=STRING), rules)})


def noise(size: int) -> str:
    """Incompressible text."""
    return random.Random(7).randbytes(size // 2).hex()


def sizes(annotations: dict[str, str]) -> int:
    return sum(len(each.encode()) for pair in annotations.items() for each in pair)


@pytest.mark.parametrize(
    ("size", "own", "labels"),
    [
        (MAX_BYTES - 200, {}, False),
        (MAX_BYTES, {}, True),
        (1_300_000, {}, True),
        (10, FULL, True),
        (60_000, {"é": "é" * 100_000}, False),
        (62_100, {"é": "é" * 100_000}, True),
    ],
)
def test_there_is_room_for_all_that_an_object_can_hold(
    conversion: Conversion, size: int, own: dict[str, str], labels: bool
) -> None:
    value = at("v1", {"a": noise(size), "b": "x"}, annotations=own, labels={"own": "y"})
    there = conversion.convert(value, "v2")
    metadata = there["metadata"]
    assert (set(metadata["labels"]) > {"own"}) == labels
    assert sizes(metadata.get("annotations", {})) <= ALL_BYTES
    for name, text in metadata["labels"].items():
        assert name == "own" or (NAME.fullmatch(name) and VALUE.fullmatch(text))
    there["spec"]["c"] = "edited"
    back = conversion.convert(there, "v1")
    assert back["spec"] == {"a": value["spec"]["a"], "b": "edited"}
    assert back["metadata"]["labels"] == {"own": "y"}


def test_what_repeats_itself_takes_little_room(conversion: Conversion) -> None:
    there = conversion.convert(at("v1", {"a": "all the same " * 100_000}), "v2")
    assert len(there["metadata"]["labels"]) < 300


def test_a_large_value_does_not_become_an_annotation() -> None:
    rules = "- {hub: spec.a, spoke: 'metadata.annotations[example.com/a]'}"
    conversion = compiled(obj(a=STRING), {"v2": (obj(), rules)})
    value = at("v1", {"a": "x" * 300_000}, annotations={"own": "y"})
    there = conversion.convert(value, "v2")
    assert there["metadata"]["annotations"] == {"own": "y"}
    assert conversion.convert(there, "v1") == value
    small = conversion.convert(at("v1", {"a": "x"}, annotations={"own": "y"}), "v2")
    assert small["metadata"]["annotations"] == {"own": "y", "example.com/a": "x"}


FORGED: dict[str, dict[str, Any]] = {
    "the mark of an earlier release": {PREFIX + each: "incomplete" for each in ("v1", "v2", "v3")},
    "no note": {LABELS + "0": "xAAAAx"},
    "no base64": {LABELS + "0": "x.x"},
    "no ASCII": {LABELS + "0": "xéx"},
    "no text": {LABELS + "0": 7},
    "a gap": {LABELS + "1": "xAAAAx"},
    "another name": {LABELS + "x": "xAAAAx"},
    "many": {f"{LABELS}{i}": "x" * 63 for i in range(20_000)},
    "of no version": {f"v9.{PREFIX}0": "x"},
}


@pytest.mark.parametrize("labels", FORGED.values(), ids=FORGED)
def test_labels_that_somebody_has_set_by_hand(conversion: Conversion, labels: dict[str, Any]) -> None:
    for source, target in (("v1", "v2"), ("v2", "v1")):
        tally = ConversionTally()
        spec = {"b": "x"} if source == "v1" else {"c": "x"}
        made = conversion.convert(at(source, spec, labels={**labels, "own": "y"}), target, tally)
        assert made["spec"] == ({"b": "x"} if target == "v1" else {"c": "x"})
        assert made["metadata"]["labels"]["own"] == "y"
        # Honest notes are created again where needed.
        assert without_notes(made)["metadata"]["labels"] == {"own": "y"}
        assert tally.ignored == any(each.startswith(f"{target}.") for each in labels)


def test_a_bomb_does_not_burst(conversion: Conversion) -> None:
    bomb = '{"fields":[' + "[]," * 2_000_000 + "[]]}"
    value = with_note(at("v2", {"c": "x"}, annotations=FULL), "v1", bomb)
    assert len(value["metadata"]["labels"]) < 1000
    tally = ConversionTally()
    assert conversion.convert(value, "v1", tally)["spec"] == {"b": "x"}
    assert tally.ignored == 1


@pytest.mark.parametrize("key", [PREFIX + "v1", LABELS + "0"])
def test_no_rule_is_about_notes(key: str) -> None:
    assert is_note(key)
    (error,) = errors(obj(a=STRING), obj(), f"- {{hub: spec.a, spoke: 'metadata.labels[{key}]'}}")
    assert "holds what the conversion keeps aside" in error.message
