"""What `crdkeeper retire` says of an outage of the API server, and of a migration that cannot be made."""

from typing import Any, Self

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from crdkeeper.cli.retire import running
from crdkeeper.cluster.resources.kinds import OfAnotherRelease
from crdkeeper.cluster.transport.client import ApiError
from crdkeeper.operations.migration.standalone import Standalone
from tests.unit.core.retirement.cases import definition, entry
from tests.unit.operations.retirement.scene import CRD, Api
from tests.unit.operations.retirement.scene import gathered as gathered  # a fixture

STORED = definition(entry("v1alpha1", deprecated=True, served=False), entry("v1"), stored=("v1alpha1", "v1"))


class Session(Api):
    """Also the context in which a client is used."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Vanishing(Session):
    """The CRD is deleted between a look and the migration: while the rights for it are reviewed."""

    async def request(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        if path.endswith("/selfsubjectaccessreviews"):
            self.objects.pop(CRD, None)
        return await super().request(method, path, body, **options)


def retire(monkeypatch: pytest.MonkeyPatch, api: Session) -> Result:
    """Run the command in that cluster."""
    monkeypatch.setattr(running, "Client", lambda _: api)
    return CliRunner().invoke(main, ["retire", "dbs.example.com", "v1alpha1", "--yes"])


def refused(monkeypatch: pytest.MonkeyPatch, refusal: ApiError) -> Result:
    """Run the command in a cluster that answers so to its first change."""
    api = Session(definition(entry("v1alpha1"), entry("v1")))
    api.refusal = refusal
    result = retire(monkeypatch, api)
    assert (result.exit_code, api.patches) == (1, 1), result.output
    return result


@pytest.mark.usefixtures("gathered")
def test_an_outage_ends_it_with_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    result = refused(monkeypatch, ApiError(503, {"message": "shutting down"}))
    assert result.stderr.splitlines()[-3:] == [
        "Error: The API server does not respond: 503 : shutting down",
        "What is done shows in the CRD; to go on, run the same command again.",
        "With --wait, the command waits for the API server.",
    ]


@pytest.mark.usefixtures("gathered")
def test_what_is_no_outage_is_not_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    result = refused(monkeypatch, ApiError(401, {"message": "Unauthorized"}))
    assert result.stderr.splitlines()[-1] == "Error: 401 : Unauthorized"


@pytest.mark.usefixtures("gathered")
def test_a_crd_that_is_deleted_before_the_migration_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Vanishing(STORED)
    api.objects |= {"/api": {}, "/apis": {}}  # discovery, which has nothing of a similar name
    result = retire(monkeypatch, api)
    assert (result.exit_code, CRD in api.objects) == (1, False), result.output
    assert result.stderr.splitlines()[-1:] == [
        "Error: DefinitionNotFound: There is no CustomResourceDefinition dbs.example.com."
    ]
    assert "DefinitionNotFound" in result.stdout


@pytest.mark.usefixtures("gathered")
def test_a_migration_that_another_release_writes_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: Standalone) -> None:
        raise OfAnotherRelease("StorageMigration", "m")

    monkeypatch.setattr(Standalone, "run", run)
    result = retire(monkeypatch, Session(STORED))
    assert result.exit_code == 1, result.output
    said = "StorageMigration m is of another release, and this one cannot read it."
    assert result.stderr.splitlines()[-1:] == [f"Error: MigrationFailed: {said}"]
