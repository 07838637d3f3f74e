"""The changes of spec.versions, applied as the API server applies JSON patches."""

from typing import Any

import pytest

from crdkeeper.core.retirement.changes import changed, own_warning, pinned, undo
from crdkeeper.core.retirement.quiet import period_of
from tests.unit.core.retirement.cases import HOUR, definition, entry
from tests.unit.jsonpatch import patched

CRD = definition(entry("v1"), entry("v1alpha1"), entry("v1beta1"))


def after(crd: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The entries of spec.versions by name."""
    return {each["name"]: each for each in patched(crd, operations)["spec"]["versions"]}


def test_each_step_changes_one_field_of_one_version() -> None:
    found = after(CRD, changed(CRD, "v1alpha1", "Deprecated"))
    assert found == {**after(CRD, []), "v1alpha1": entry("v1alpha1", deprecated=True)}
    found = after(CRD, changed(CRD, "v1alpha1", "NotServed"))
    assert found == {**after(CRD, []), "v1alpha1": entry("v1alpha1", served=False)}
    assert list(after(CRD, changed(CRD, "v1alpha1", "Removed"))) == ["v1", "v1beta1"]


def test_steps_that_are_done_change_nothing() -> None:
    done = definition(entry("v1"), entry("v1alpha1", deprecated=True, served=False))
    assert changed(done, "v1alpha1", "Deprecated") == []
    assert changed(done, "v1alpha1", "NotServed") == []
    assert changed(definition(entry("v1")), "v1alpha1", "Removed") == []


def test_a_patch_does_not_hit_another_version() -> None:
    other = definition(entry("v1alpha1"), entry("v1"))
    for step in ("Deprecated", "NotServed", "Removed"):
        with pytest.raises(ValueError, match="test"):
            patched(other, changed(CRD, "v1alpha1", step))


def test_undo_leaves_no_trace() -> None:
    done = definition(entry("v1"), entry("v1alpha1", deprecated=True, served=False))
    assert after(done, undo(done, "v1alpha1")) == after(definition(entry("v1"), entry("v1alpha1")), [])
    assert undo(CRD, "v1alpha1") == []
    assert undo(definition(entry("v1")), "v1alpha1") == []


def test_undo_leaves_a_deprecation_that_has_a_text() -> None:
    own = {"deprecated": True, "deprecationWarning": "Use v1."}
    done = definition(entry("v1"), entry("v1alpha1", served=False, **own))
    before = definition(entry("v1"), entry("v1alpha1", **own))
    assert after(done, undo(done, "v1alpha1")) == after(before, [])
    assert undo(before, "v1alpha1") == []
    assert (own_warning(before, "v1alpha1"), own_warning(before, "v1"), own_warning(CRD, "x")) == (
        "Use v1.",
        "",
        "",
    )


def test_a_pinned_patch_names_the_object_and_the_state_of_its_spec() -> None:
    assert pinned(CRD, [])[:2] == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "test", "path": "/metadata/generation", "value": 1},
    ]


@pytest.mark.parametrize(
    ("text", "hours"),
    [("168h", 168), ("1h30m", 1.5), ("90m", 1.5), ("3600s", 1), ("0s", 0), ("99999h", 99999)],
)
def test_periods(text: str, hours: float) -> None:
    assert period_of(text) == hours * HOUR
