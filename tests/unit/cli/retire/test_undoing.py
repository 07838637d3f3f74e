"""What `crdkeeper retire undo` changes, in which order, and what it leaves."""

import asyncio
from typing import Any

import pytest

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.cli.output.printing import Trouble
from crdkeeper.cli.retire.undoing import _undo
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.operations.rights import NotPermitted
from tests import virtualtime
from tests.unit.controllers.fakeapi import OURS
from tests.unit.core.retirement.cases import definition, entry, owner
from tests.unit.operations.retirement.scene import CRD, RETIREMENT, Api

RESOURCE = GroupResource(group="example.com", resource="dbs")
SERVED = entry("v1alpha1")
DEPRECATED = SERVED | {"deprecated": True}
WARNED = DEPRECATED | {"deprecationWarning": "Use v1."}
SUSPENDED = "VersionRetirement old is suspended."
NOTHING = "v1alpha1 of dbs.example.com is served and not deprecated: nothing to do."
AGAIN = "v1alpha1 of dbs.example.com is served again."
UNANSWERED = (
    "No operator has taken note of the suspension within 10 seconds. If one runs, it may still take a step: "
    "run the command again then."
)
STAYS = "It stays deprecated, because no retirement has set its deprecationWarning: Use v1."


class Operated(Api):
    """A cluster whose operator looks at its retirement 3 seconds after the command began."""

    runs = True
    step: Any = None
    """The CRD after the step that the operator takes until then."""

    def look(self) -> None:
        if self.step is not None:
            self._put(self.step)
        stored = self.objects[RETIREMENT]
        stored["status"] = {"observedGeneration": stored["metadata"]["generation"]}


def cluster(old: dict[str, Any]) -> Operated:
    return Operated(definition(entry("v1"), old))


def undone(api: Operated, capsys: pytest.CaptureFixture[str], *, yes: bool = True) -> list[str]:
    """What the command prints."""

    async def main() -> None:
        if api.runs:
            asyncio.get_running_loop().call_later(3.0, api.look)
        await _undo(api.client, RESOURCE, "v1alpha1", yes=yes)

    virtualtime.run(main())
    printed = capsys.readouterr()
    return printed.out.splitlines() + printed.err.splitlines()


def left(api: Operated) -> dict[str, Any]:
    found: dict[str, Any] = api.objects[CRD]["spec"]["versions"][1]
    return found


def test_a_retirement_is_suspended_before_its_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    api = cluster(SERVED)
    told = "With --yes, VersionRetirement old is suspended all the same."
    assert undone(api, capsys, yes=False) == [NOTHING, told]
    assert api.written == {}
    assert undone(api, capsys) == [SUSPENDED, NOTHING]
    assert api.written[RETIREMENT] == {"spec": {"suspend": True}}
    for yes in (False, True):
        assert undone(api, capsys, yes=yes) == [NOTHING]


@pytest.mark.parametrize("suspended", [False, True], ids=["by the command", "by somebody just before"])
def test_a_step_before_the_operator_sees_the_suspension_is_taken_back(
    capsys: pytest.CaptureFixture[str], suspended: bool
) -> None:
    api = cluster(SERVED)
    if suspended:
        api.ask(suspend=True)
    api.step = definition(entry("v1"), WARNED | {"served": False})
    assert undone(api, capsys) == [*([] if suspended else [SUSPENDED]), AGAIN, STAYS]
    assert left(api) == WARNED


def test_no_operator_is_waited_for_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    api = cluster(DEPRECATED)
    api.runs = False
    said = "v1alpha1 of dbs.example.com is no longer deprecated."
    assert undone(api, capsys) == [SUSPENDED, said, UNANSWERED]
    assert left(api) == SERVED


def test_no_right_to_change_is_needed_where_nothing_is_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    api = cluster(SERVED)
    api.forbidden = {("patch", "customresourcedefinitions")}
    with pytest.raises(NotPermitted):
        undone(api, capsys)
    assert api.written == {}
    api.ask(mode="Guide")
    for yes in (False, True):
        assert undone(api, capsys, yes=yes) == [NOTHING]
    # Nor is the kind.
    for yes in (False, True):
        api.failures = [("GET", f"{OURS}/versionretirements", ApiError(404, {"message": "not found"}))]
        assert undone(api, capsys, yes=yes) == [NOTHING]
        assert api.failures == []


def test_one_that_cannot_be_read_is_named_before_anything_is_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = cluster(DEPRECATED)
    spec = {**owner().to_object()["spec"], "mode": "Later"}
    api.objects[f"{OURS}/versionretirements/newer"] = {"metadata": {"name": "newer"}, "spec": spec}
    with pytest.raises(Trouble, match="another release cannot be read, and so not be suspended: newer"):
        undone(api, capsys)
    assert (api.written, left(api)) == ({}, DEPRECATED)


def test_a_deprecation_with_a_text_stays(capsys: pytest.CaptureFixture[str]) -> None:
    api = cluster(WARNED | {"served": False})
    shown = undone(api, capsys, yes=False)
    assert shown[-1] == STAYS
    assert "deprecated" not in shown[1]
    assert undone(api, capsys) == [SUSPENDED, AGAIN, STAYS]
    assert left(api) == WARNED
    nothing = "v1alpha1 of dbs.example.com is served: nothing to do."
    assert undone(api, capsys) == [nothing, STAYS]
