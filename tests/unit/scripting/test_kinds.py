"""The kinds as objects for scripts: how to create them, and which parts are typed."""

import subprocess
import sys
from typing import Any

import pytest
from pykube.config import KubeConfig
from pykube.exceptions import HTTPError
from pykube.http import HTTPClient

from crdkeeper import scripting
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.storagemigration import MigrationLimits, MigrationRetry, StorageMigrationSpec
from crdkeeper.scripting import (
    StorageMigration,
    TimedOut,
    kinds,
    report_of,
)
from tests.unit.scripting.apiserver import answer, event, listing, refusal, serving, watch
from tests.unit.scripting.objects import DONE, NAME, RUNNING, condition, migration


@pytest.fixture
def nowhere() -> HTTPClient:
    """A client that nothing is asked of."""
    return HTTPClient(KubeConfig.from_url("http://127.0.0.1:1"))


def test_each_kind_is_there() -> None:
    for kind in KINDS:
        ours = getattr(kinds, kind.__name__, None)
        assert ours is not None, f"scripting/kinds.py needs a class {kind.__name__}"
        assert (ours.kind, ours.endpoint) == (kind.__name__, kind.plural)
        assert getattr(scripting, kind.__name__, None) is ours, f"scripting/__init__.py needs {kind.__name__}"


def test_a_migration_is_made_of_a_resources_name(nowhere: HTTPClient) -> None:
    made = StorageMigration.for_(
        "databases.example.com",
        api=nowhere,
        mode="Plan",
        limits={"max_objects_per_second": 50},
        ttl_seconds_after_finished=60,
    )
    assert made.obj == {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "StorageMigration",
        "metadata": {"name": "databases.example.com"},
        "spec": {
            "resource": {"group": "example.com", "resource": "databases"},
            "mode": "Plan",
            "limits": {"maxObjectsPerSecond": 50},
            "ttlSecondsAfterFinished": 60,
        },
    }
    assert (made.spec.limits.max_objects_per_second, made.spec.trim) == (50, True)
    assert made.status.progress.total == 0
    assert not made.ready


def test_resources_of_the_core_group_have_no_dot(nowhere: HTTPClient) -> None:
    made = StorageMigration.for_("secrets", api=nowhere, name="new-keys")
    assert made.name == "new-keys"
    assert made.obj["spec"] == {"resource": {"group": "", "resource": "secrets"}}


@pytest.mark.parametrize(
    ("resource", "options"),
    [
        ("Data bases", {}),
        (NAME, {"tirm": False}),
        (NAME, {"mode": "Excute"}),
        (NAME, {"limits": {"max_concurency": 3}}),
        (NAME, {"limits": {"max_concurrency": 0}}),
    ],
)
def test_what_the_api_server_would_refuse_or_drop_is_no_migration(
    resource: str, options: Any, nowhere: HTTPClient
) -> None:
    with pytest.raises(ValueError, match=r"."):
        StorageMigration.for_(resource, api=nowhere, **options)


def test_all_options_are_fields_and_all_fields_are_options() -> None:
    fields = set(StorageMigrationSpec.model_fields) - {"resource", "managed_by"}
    assert set(kinds.MigrationOptions.__annotations__) == fields
    assert set(kinds.Limits.__annotations__) == set(MigrationLimits.model_fields)
    assert set(kinds.Retry.__annotations__) == set(MigrationRetry.model_fields)


def test_a_migration_is_created_once() -> None:
    with serving(answer(migration(RUNNING), 201), refusal(409, "already exists")) as server:
        made = StorageMigration.for_(NAME, api=HTTPClient(KubeConfig.from_url(server.url)))
        body = made.obj
        assert made.create() is made
        with pytest.raises(HTTPError, match="already exists"):
            made.create()
    (request, _) = server.requests
    assert (request.method, request.path) == ("POST", "/apis/crdkeeper.dev/v1alpha1/storagemigrations")
    assert request.body == body
    assert made.obj == migration(RUNNING)


def test_an_object_is_read_by_its_name() -> None:
    with serving(answer(migration(DONE)), refusal(404, "not found")) as server:
        found = StorageMigration.named(NAME, api=HTTPClient(KubeConfig.from_url(server.url)))
        assert found.reload() is found
        assert found.obj == migration(DONE)
        with pytest.raises(HTTPError, match="not found") as raised:
            found.reload()
    assert raised.value.code == 404
    assert server.requests[0].path == f"/apis/crdkeeper.dev/v1alpha1/storagemigrations/{NAME}"


def test_conditions_are_typed(nowhere: HTTPClient) -> None:
    found = StorageMigration(nowhere, migration(DONE, condition("Trimmed", "False", "NotRequested")))
    assert [each.type for each in found.conditions] == ["Ready", "Trimmed"]
    trimmed = found.condition("Trimmed")
    assert trimmed is not None
    assert (trimmed.status, trimmed.reason, trimmed.observed_generation) == ("False", "NotRequested", 1)
    assert found.condition("Verified") is None
    assert found.ready


def test_a_report_is_waited_for_until_it_is_about_that_generation() -> None:
    def report(seen: int) -> dict[str, Any]:
        return {
            **migration(condition("Ready", "True")),
            "kind": "DefinitionReport",
            "status": {"observedGeneration": 1, "definitionGeneration": seen, "findingCounts": {"total": 3}},
        }

    later = watch(event("ADDED", report(4)), event("MODIFIED", report(5)))
    with serving(listing(), later) as server:
        api = HTTPClient(KubeConfig.from_url(server.url))
        found = report_of(NAME, api=api, generation=5)
    assert (found.status.definition_generation, found.status.finding_counts.total) == (5, 3)
    assert server.requests[0].path == "/apis/crdkeeper.dev/v1alpha1/definitionreports"


def test_no_report_is_a_timeout() -> None:
    with serving(listing(), watch(stays=True)) as server, pytest.raises(TimedOut, match="no such object"):
        report_of(NAME, api=HTTPClient(KubeConfig.from_url(server.url)), timeout=0.3)


def test_without_pykube_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['pykube'] = None; import crdkeeper.scripting"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: crdkeeper.scripting needs pykube-ng: pip install 'crdkeeper[pykube]'"
    )
