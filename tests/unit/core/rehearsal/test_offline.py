"""Rehearsals without a cluster."""

from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.offline import rehearse_offline
from tests.unit.core.rehearsal.crds import TEXT, crd, version, widget

OLD = crd(version("v1", a=TEXT), version("v2", storage=False, a=TEXT))
V1, V2 = (crd(version(name, a=TEXT)) for name in ("v1", "v2"))


def test_the_version_that_the_old_crd_stores_cannot_go() -> None:
    (rejection,) = rehearse_offline(V2, OLD, []).rejections
    assert rejection.startswith('status.storedVersions[0]: Invalid value: "v1": missing from spec.versions')
    assert not rehearse_offline(V1, OLD, []).rejections


def test_objects_of_a_version_that_the_new_crd_lacks() -> None:
    for old, new, stored_in in ((None, V2, "v1"), (OLD, V1, "v2")):
        report = rehearse_offline(new, old, [widget({"a": "x"}, stored_in)])
        assert report.tally.affected[EffectKind.UNREADABLE] == 1
