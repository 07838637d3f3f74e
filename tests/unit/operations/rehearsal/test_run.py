"""A rehearsal on an API server that is busy or fails, and of a CRD that others change meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.operations.rehearsal.run import CannotRehearse, Conversions, rehearse
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json
from tests.unit.core.rehearsal.crds import TEXT, crd, version, widget

NEW = crd(version(a=TEXT))
LIVE: dict[str, Any] = {
    **NEW,
    "metadata": {**NEW["metadata"], "uid": "u1", "generation": 1, "resourceVersion": "5"},
    "status": {"storedVersions": ["v1"]},
}
ALLOWED = json({"status": {"allowed": True}})
RIGHTS = [ALLOWED] * 4
OBJECTS = json(
    {"apiVersion": "example.com/v1", "kind": "WidgetList", "items": [widget({"a": "x"})], "metadata": {}}
)
GET, TRIED = json(LIVE), json(LIVE)


@pytest.mark.parametrize(
    "answers",
    [
        [GET, *RIGHTS, TRIED, OBJECTS, GET],
        # Busy or broken for a while, at every step.
        [failure(429, headers={"Retry-After": "0"}), GET, *RIGHTS, TRIED, OBJECTS, GET],
        [GET, *RIGHTS, failure(500), TRIED, OBJECTS, GET],
        [GET, *RIGHTS, TRIED, failure(503), failure(504), OBJECTS, GET],
        [GET, *RIGHTS, TRIED, OBJECTS, failure(429), GET],
        # Somebody writes the CRD at the same time.
        [GET, *RIGHTS, failure(409, "Conflict", "changed"), GET, TRIED, OBJECTS, GET],
        # The continue token has expired, and the server offers another one.
        [
            GET,
            *RIGHTS,
            TRIED,
            json({"items": [], "metadata": {"continue": "old"}}),
            failure(410, "Expired", "too old", metadata={"continue": "new"}),
            OBJECTS,
            GET,
        ],
    ],
)
async def test_what_passes_is_waited_for(tmp_path: Path, answers: list[Handler]) -> None:
    async with client_of(tmp_path, *answers) as (_, client):
        report = await rehearse(client, NEW, Conversions())
    assert (report.verdict.value, report.tally.objects, report.by_server) == ("Safe", 1, 0)


@pytest.mark.parametrize(
    "gone",
    [
        [failure(404, "NotFound", "gone"), failure(404, "NotFound", "gone")],
        [OBJECTS, failure(404, "NotFound", "gone")],
        [OBJECTS, json({"metadata": {**LIVE["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})],
        # Created again meanwhile.
        [OBJECTS, json({"metadata": {**LIVE["metadata"], "uid": "u2"}})],
    ],
)
async def test_a_crd_that_is_deleted_in_the_meantime(tmp_path: Path, gone: list[Handler]) -> None:
    async with client_of(tmp_path, GET, *RIGHTS, TRIED, *gone) as (_, client):
        with pytest.raises(CannotRehearse, match="deleted in the meantime"):
            await rehearse(client, NEW, Conversions())


async def test_a_crd_that_is_deleted_before_it_is_tried_is_a_new_one(tmp_path: Path) -> None:
    missing = failure(404, "NotFound", "gone")
    async with client_of(tmp_path, GET, *RIGHTS, missing, missing, TRIED) as (_, client):
        report = await rehearse(client, NEW, Conversions())
    assert (report.is_new, report.verdict.value, report.tally.objects) == (True, "Safe", 0)


async def test_an_error_that_stays_is_raised(tmp_path: Path) -> None:
    async with client_of(tmp_path, GET, *RIGHTS, TRIED, failure(500, "", "etcd is down")) as (_, client):
        with pytest.raises(ApiError, match="etcd is down"):
            await rehearse(client, NEW, Conversions())
