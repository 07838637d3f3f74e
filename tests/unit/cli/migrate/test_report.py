"""What `crdkeeper migrate` says at its end."""

import pytest

from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.cli.migrate.report import report
from tests.unit.operations.migration.fleet import Fleet, migrate
from tests.unit.operations.migration.test_taking_over import NAME, Fenced


@pytest.mark.parametrize("number", [1, 3])
def test_what_was_left_alone_is_named_once(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fleet(number)
    spec = {"resource": {"group": "other.example.com", "resource": "things"}, "mode": "Later"}
    fleet.migrations["newer"] = {"metadata": {"name": "newer"}, "spec": spec}
    attempts, _ = migrate(fleet)

    assert report(attempts, "text", several=number > 1) == 0

    assert capsys.readouterr().err == "StorageMigrations of another release were left alone: newer\n"


def test_what_can_no_longer_be_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fenced(None)

    def watch(_: StorageMigration) -> None:
        """Another release writes it before this one does."""
        fleet.write(fleet.migrations[NAME]["status"], mode="Later")

    attempts, _ = migrate(fleet, watch=watch)

    assert report(attempts, "text", several=False) == 1

    said = f"Error: StorageMigration {NAME} is of another release, and this one cannot read it\n"
    assert capsys.readouterr().err == said
