"""Rehearsals without a cluster."""

import json
from typing import Any

import pytest

from crdkeeper.apiserver.objects.effort import SHARE, SHARE_OF_BYTE, SharedAllowance
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.offline import OfflineRehearsal, rehearse_offline
from crdkeeper.core.rehearsal.report import RehearsalReport, RehearsalVerdict
from tests.unit.core.rehearsal.crds import INTEGER, TEXT, crd, version, widget

Json = Any
OLD = crd(version("v1", a=TEXT), version("v2", storage=False, a=TEXT))
V1, V2 = (crd(version(name, a=TEXT)) for name in ("v1", "v2"))
MANY = 10**15


def rehearsed(new: Json, old: Json | None, *objects: Json) -> RehearsalReport:
    (report,) = rehearse_offline([OfflineRehearsal(new, old)], objects)
    return report


def test_the_version_that_the_old_crd_stores_cannot_go() -> None:
    (rejection,) = rehearsed(V2, OLD).rejections
    assert rejection.startswith('status.storedVersions[0]: Invalid value: "v1": missing from spec.versions')
    assert not rehearsed(V1, OLD).rejections


def test_objects_of_a_version_that_the_new_crd_lacks() -> None:
    for old, new, stored_in in ((None, V2, "v1"), (OLD, V1, "v2")):
        report = rehearsed(new, old, widget({"a": "x"}, stored_in))
        assert report.tally.affected[EffectKind.UNREADABLE] == 1


def test_objects_are_read_once_for_all_crds() -> None:
    other = crd(version(a=INTEGER))
    other["metadata"]["name"] = "gears.example.com"
    other["spec"]["names"] = {"plural": "gears", "kind": "Gear"}
    gear = {**widget({"a": 1}), "kind": "Gear"}
    read = iter([widget({"a": "x"}), gear, widget({"a": "y"}), {**gear, "apiVersion": "v1"}])
    widgets, gears = rehearse_offline([OfflineRehearsal(V1, None), OfflineRehearsal(other, None)], read)
    assert (widgets.tally.objects, gears.tally.objects) == (2, 1)
    assert (widgets.notes, gears.notes) == (
        ["2 of the objects are of another kind"],
        ["3 of the objects are of another kind"],
    )


BRANCHES = {"type": "array", "items": {**TEXT, "anyOf": [{"minLength": 5 + i} for i in range(100)]}}
RULE = {"rule": "self.a.all(x, self.a.all(y, x == y))"}


@pytest.mark.parametrize(
    ("parts", "value"),
    [
        ({"a": BRANCHES}, ["x"] * 100),
        ({"a": {"type": "array", "maxItems": 300, "items": INTEGER}, "rules": [RULE]}, [1] * 300),
    ],
    ids=["branches", "rules"],
)
def test_objects_that_take_long_do_not_add_up(parts: Json, value: Json) -> None:
    new = crd(version(**parts))
    slow = [widget({"a": value}) for _ in range(50)]

    def steps(*objects: Json) -> int:
        with SharedAllowance(MANY).for_one(0) as counted:
            rehearsal = OfflineRehearsal(new, None, allowance=SharedAllowance(5_000_000))
            (report,) = rehearse_offline([rehearsal], objects)
        if objects:
            # Others are predicted, also once the slow ones have used up what is allowed.
            (finding,) = (each for each in report.tally.findings() if each.kind is EffectKind.INDETERMINATE)
            assert finding.message == "to predict all objects may take too long"
            assert finding.count == sum(each["spec"] == slow[0]["spec"] for each in objects)
            assert report.verdict is not RehearsalVerdict.SAFE
        return MANY + SHARE - counted.left

    quick = widget({"a": value[:1]})
    compiling = steps()
    assert steps(slow[0], quick) - compiling > 5_000_000
    # The reserve, each one's share, and what was refused.
    size = sum(len(json.dumps(each)) for each in (*slow, quick))
    allowed = 5_000_000 + 51 * SHARE + size * SHARE_OF_BYTE
    assert steps(*slow, quick) - compiling < 1.5 * allowed
