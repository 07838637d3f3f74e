"""What `crdkeeper retire undo` changes, in which order, and what it leaves."""

from typing import Any

import pytest

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.cli.retire.undoing import _undo
from tests.unit.core.retirement.cases import definition, entry
from tests.unit.operations.retirement.scene import CRD, RETIREMENT, Api

RESOURCE = GroupResource(group="example.com", resource="dbs")
SERVED = entry("v1alpha1")
DEPRECATED = SERVED | {"deprecated": True}
WARNED = DEPRECATED | {"deprecationWarning": "Use v1."}
SUSPENDED = "VersionRetirement old is suspended."
STAYS = "It stays deprecated, because no retirement has set its deprecationWarning: Use v1."


class Operated(Api):
    """A cluster whose operator takes a step just before its retirement is suspended."""

    step: Any = None

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        if (method, path) == ("PATCH", RETIREMENT) and self.step is not None:
            self._put(self.step)
        return await super().request(method, path, body, **options)


def cluster(old: dict[str, Any]) -> Operated:
    return Operated(definition(entry("v1"), old))


async def undone(api: Operated, capsys: pytest.CaptureFixture[str], *, yes: bool = True) -> list[str]:
    """What the command prints."""
    await _undo(api.client, RESOURCE, "v1alpha1", yes=yes)
    return capsys.readouterr().out.splitlines()


def left(api: Operated) -> dict[str, Any]:
    found: dict[str, Any] = api.objects[CRD]["spec"]["versions"][1]
    return found


async def test_a_retirement_is_suspended_before_its_first_step(capsys: pytest.CaptureFixture[str]) -> None:
    api = cluster(SERVED)
    nothing = "v1alpha1 of dbs.example.com is served and not deprecated: nothing to do."
    told = "With --yes, VersionRetirements of the version with mode Execute are suspended all the same."
    assert await undone(api, capsys, yes=False) == [nothing, told]
    assert api.written == {}
    assert await undone(api, capsys) == [SUSPENDED, nothing]
    assert api.written[RETIREMENT] == {"spec": {"suspend": True}}


async def test_a_step_just_before_the_suspension_is_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    api = cluster(SERVED)
    api.step = definition(entry("v1"), DEPRECATED)
    said = "v1alpha1 of dbs.example.com is no longer deprecated."
    assert await undone(api, capsys) == [SUSPENDED, said]
    assert left(api) == SERVED


async def test_a_deprecation_with_a_text_stays(capsys: pytest.CaptureFixture[str]) -> None:
    api = cluster(WARNED | {"served": False})
    shown = await undone(api, capsys, yes=False)
    assert shown[-1] == STAYS
    assert "deprecated" not in shown[1]
    again = "v1alpha1 of dbs.example.com is served again."
    assert await undone(api, capsys) == [SUSPENDED, again, STAYS]
    assert left(api) == WARNED
    nothing = "v1alpha1 of dbs.example.com is served: nothing to do."
    assert (await undone(api, capsys))[1:] == [nothing, STAYS]
