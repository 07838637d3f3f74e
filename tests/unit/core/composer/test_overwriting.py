"""Who overwrites the CRD of a definition, and how long it is left to them."""

from dataclasses import replace
from typing import Any

import pytest

from crdkeeper.core.composer.overwriting import Applied, overwritten

Json = Any
OURS = "crdkeeper-composer"


def crd(**managers: list[str]) -> Json:
    """A CRD whose managers own these fields below spec.names, and the versions."""
    entries = [
        {
            "manager": manager.replace("_", "-"),
            "operation": "Apply",
            "fieldsV1": {
                "f:metadata": {"f:annotations": {".": {}, "f:example.com/a.b": {}}},
                "f:spec": {"f:names": {f"f:{each}": {} for each in fields}, "f:versions": {}},
            },
        }
        for manager, fields in managers.items()
    ]
    return {"metadata": {"managedFields": entries}}


@pytest.mark.parametrize(
    ("live", "applied", "said"),
    [
        (
            crd(crdkeeper_composer=["kind"], rival=["categories", "shortNames"]),
            crd(crdkeeper_composer=["kind", "categories"], rival=["shortNames"]),
            "(spec.names.categories) is changed again and again by rival.",
        ),
        (
            crd(crdkeeper_composer=["kind"], other=["kind"]),
            crd(crdkeeper_composer=["kind", "categories"], other=["kind"]),
            "(spec.names.categories) is changed again and again by somebody unknown to metadata.",
        ),
        (
            crd(rival=["kind", "plural", "a", "b", "c", "d", "e"]),
            crd(crdkeeper_composer=["kind", "plural", "a", "b", "c", "d", "e"]),
            "by rival.",
        ),
        ({"metadata": {}}, {"metadata": {}}, "(metadata) is changed again and again by somebody"),
    ],
)
def test_who_changed_what(live: Json, applied: Json, said: str) -> None:
    assert said in overwritten(live, applied)


def test_what_strangers_wrote_is_bounded() -> None:
    many = {f"rival{each}": [f"name{each}"] for each in range(500)}
    text = overwritten(crd(**many), crd(crdkeeper_composer=[f"new{each}" for each in range(500)]))
    assert len(text) < 500
    assert "spec.names.new100 and 497 more" in text


def test_it_is_put_back_at_once_and_then_after_pauses() -> None:
    before, after = crd(rival=["categories"]), crd(crdkeeper_composer=["categories"])
    known = Applied("a")
    paused = []
    now = 100.0
    for _ in range(8):
        assert not known.is_paused(now)
        known = known.again(before, after, now)
        seconds = 0
        while known.is_paused(now + seconds):
            seconds += 1
        paused.append(seconds)
        now += seconds + 1
    assert paused == [0, 0, 15, 30, 60, 120, 120, 120]
    assert "by rival. The composer has put it back 8 times" in known.verdict().message
    assert known.again(before, after, now + 600.0).times == 1
    assert replace(known, content="b") != known
