"""StatusWritersReady: what managedFields show about writers of status through the main resource."""

from datetime import timedelta
from typing import Any

import pytest

from crdkeeper.api.meta import format_time
from crdkeeper.core.diagnosis.conditions.statuswriters import StatusWritersFacts, judge
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.statuswriters import StatusTally, StatusWriters
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.builders import NOW, definition

OBSERVED: dict[str, Any] = {"f:status": {"f:observedGeneration": {}}}
CONDITIONS: dict[str, Any] = {"f:status": {"f:conditions": {}}}
OBSERVED_IN_CONDITION: dict[str, Any] = {
    "f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': {".": {}, "f:observedGeneration": {}}}}
}
PHASE: dict[str, Any] = {"f:status": {".": {}, "f:phase": {}}}
REPLICAS: dict[str, Any] = {"f:status": {"f:workers": {".": {}, "f:replicas": {}}}}
LABELS: dict[str, Any] = {"f:metadata": {"f:labels": {}}}
APPLIED: dict[str, Any] = {
    "f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}}}
}
TRACKED: dict[str, Any] = {"f:metadata": {"f:annotations": {"f:argocd.argoproj.io/tracking-id": {}}}}
SPEC: dict[str, Any] = {"f:spec": {"f:size": {}}}
NONE = DeclaredSubresources(stateful=("v1", "v2"))
BOTH = DeclaredSubresources(status=("v1", "v2"), stateful=("v1", "v2"))
SCALED = DeclaredSubresources(stateful=("v1", "v2"), scale_status=(".status.workers.replicas",))
ONLY_V1 = DeclaredSubresources(status=("v1",), stateful=("v1", "v2"))


def minutes_ago(minutes: float) -> str:
    return format_time(NOW - timedelta(minutes=minutes))


def entry(
    fields: Any, minutes: float = 90, *, manager: str = "ctl", subresource: str = "", version: str = "v2"
) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": f"example.com/{version}",
        "time": minutes_ago(minutes),
        "fieldsV1": fields,
        **({"subresource": subresource} if subresource else {}),
    }


CHANGED = entry(None, 60)
"""The CRD got its present form an hour ago."""


def found(*objects: list[dict[str, Any]], declared: DeclaredSubresources = BOTH) -> StatusWriters:
    changed = [{**CHANGED, "apiVersion": "apiextensions.k8s.io/v1"}]
    tally = StatusTally(definition(managedFields=changed), declared, NOW)
    tally.add(
        {"metadata": {"namespace": "ns", "name": f"w{i}", "managedFields": each}}
        for i, each in enumerate(objects)
    )
    return tally.writers(complete=True)


def verdict(seen: StatusWriters | None, declared: DeclaredSubresources = BOTH) -> Verdict:
    return judge(StatusWritersFacts(definition(), declared, seen))


@pytest.mark.parametrize(
    ("entries", "declared", "reason"),
    [
        ([entry(OBSERVED)], NONE, "NoStatusSubresource"),
        ([entry(CONDITIONS)], NONE, "NoStatusSubresource"),
        ([entry(OBSERVED)], ONLY_V1, "NoStatusSubresource"),
        ([entry(OBSERVED, version="v1")], ONLY_V1, "WrittenBeforeSubresource"),
        ([entry({"f:status": {}})], NONE, "StatusWritten"),
        ([entry({"f:status": {".": {}}})], NONE, "StatusWritten"),
        ([entry(PHASE)], NONE, "NoStatusSubresource"),
        ([entry({**PHASE, **LABELS})], NONE, "NoStatusSubresource"),
        ([entry(PHASE)], BOTH, "WrittenBeforeSubresource"),
        ([entry(PHASE), entry(SPEC, 30, manager="user")], BOTH, "WrittenBeforeSubresource"),
        # A manifest with a status, unless it is that of a controller.
        ([entry({**PHASE, **SPEC})], NONE, "StatusWritten"),
        ([entry({**PHASE, **LABELS, "f:data": {}})], NONE, "StatusWritten"),
        # The rest of the manifest was there already, and an update owns only what it changes.
        ([entry(SPEC), entry({**PHASE, **APPLIED}, manager="argocd")], NONE, "StatusWritten"),
        ([entry(SPEC), entry({**PHASE, **TRACKED}, manager="argocd")], NONE, "StatusWritten"),
        ([entry(SPEC), entry(PHASE, manager="kubectl-edit")], NONE, "StatusWritten"),
        ([entry({**PHASE, "f:metadata": {"f:annotations": [1]}})], NONE, "NoStatusSubresource"),
        ([entry({**REPLICAS, **SPEC})], NONE, "StatusWritten"),
        ([entry({**REPLICAS, **SPEC})], SCALED, "NoStatusSubresource"),
        ([entry({**PHASE, **SPEC})], SCALED, "StatusWritten"),
        ([entry({"f:status": {"f:workers": []}, **SPEC})], SCALED, "StatusWritten"),
        ([entry({**OBSERVED, **SPEC})], NONE, "NoStatusSubresource"),
        ([entry(SPEC)], NONE, "StatusWritten"),
        # A group whose name begins like ours, and others.
        ([{**entry(OBSERVED), "apiVersion": "example.com.au/v2"}], NONE, "StatusWritten"),
        ([entry(OBSERVED)], BOTH, "WrittenBeforeSubresource"),
        ([entry(OBSERVED, subresource="status")], BOTH, "StatusWritten"),
        ([entry(OBSERVED), entry(CONDITIONS, subresource="status")], BOTH, "StatusWritten"),
        # spec changed after the CRD, and long enough ago.
        ([entry(OBSERVED), entry(SPEC, 30, manager="user")], BOTH, "StatusWritesIgnored"),
        ([entry(OBSERVED_IN_CONDITION), entry(SPEC, 30, manager="user")], BOTH, "StatusWritesIgnored"),
        ([entry({**OBSERVED, **SPEC}, 30)], BOTH, "StatusWritesIgnored"),
        ([entry(CONDITIONS), entry(SPEC, 30, manager="user")], BOTH, "WrittenBeforeSubresource"),
        ([entry(OBSERVED), entry(SPEC, 70, manager="user")], BOTH, "WrittenBeforeSubresource"),
        ([entry(OBSERVED), entry(SPEC, 9, manager="user")], BOTH, "WrittenBeforeSubresource"),
        (
            [entry(OBSERVED), entry(SPEC, 30, manager="user"), entry({}, subresource="status")],
            BOTH,
            "StatusWritten",
        ),
        # Nothing of a stranger's form is believed.
        (
            [entry(None), entry([]), entry({"f:status": [1]}), entry({"f:status": "f:conditions"})],
            NONE,
            "StatusWritten",
        ),
        (
            [{"manager": "m"}, {"apiVersion": "example.com/v2", "fieldsV1": OBSERVED}],
            NONE,
            "NoStatusSubresource",
        ),
    ],
)
def test_what_an_object_shows(
    entries: list[dict[str, Any]], declared: DeclaredSubresources, reason: str
) -> None:
    said = verdict(found(entries, declared=declared), declared)
    # Only the authors can mend it.
    assert (said.reason.name, said.reason.healthy) == (reason, True)


def test_the_message_names_the_writer_and_objects() -> None:
    seen = found([entry(OBSERVED), entry(SPEC, 30, manager="user")], [entry(SPEC)])
    assert verdict(seen).message.startswith(
        "The status of 1 of 2 objects has not followed spec. "
        'Written by "ctl" at v2 (Update, for example ns/w0), '
        f"which last wrote at {minutes_ago(90)}. Use a release"
    )


def test_what_is_broken_comes_first() -> None:
    ignored = [entry(OBSERVED, version="v1"), entry(SPEC, 30, manager="user")]
    seen = found([entry(OBSERVED)], ignored, [entry(OBSERVED, version="v1")], declared=ONLY_V1)
    assert (seen.without.objects, seen.ignored.objects, seen.before.objects) == (1, 1, 1)
    assert verdict(seen, ONLY_V1).reason.name == "StatusWritesIgnored"


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(ProbeTrouble.FORBIDDEN, "NotPermitted"), (ProbeTrouble.BUSY, "APIServerUnavailable")],
)
def test_a_list_that_ends(trouble: ProbeTrouble, reason: str) -> None:
    failure = Failure(trouble, 403, "cannot list")
    assert verdict(StatusWriters(0, False, failure=failure)).reason.name == reason
    # What was found before it ended is true all the same.
    some = found([entry(OBSERVED)], declared=NONE)
    seen = StatusWriters(100, False, without=some.without, failure=failure)
    assert verdict(seen, NONE).reason.name == "NoStatusSubresource"
    assert "of the first 100 objects" in verdict(seen, NONE).message


def test_without_an_answer() -> None:
    assert verdict(None).reason.name == "Pending"
    assert verdict(None, DeclaredSubresources()).reason.name == "NoStatus"


def test_invented_managers_take_bounded_memory() -> None:
    seen = found(*([entry(OBSERVED, manager=f"m{i}" + "x" * 100)] for i in range(1000)), declared=NONE)
    assert (seen.without.objects, seen.without.total, len(seen.without.shown)) == (1000, 200, 5)
    message = verdict(seen, NONE).message
    assert "; and 195 more." in message
    assert len(message) < 2500


def test_a_number_that_changes_does_not_change_the_message() -> None:
    """Otherwise the report of each kind whose objects come and go would be written again and again."""
    one, two = (verdict(StatusWriters(number, True)).message for number in (1, 2))
    assert one == two
    assert one.startswith("managedFields of all objects show none of these as written only through the main")
    assert verdict(StatusWriters(500, False)).message.startswith("managedFields of the first 500 objects ")
