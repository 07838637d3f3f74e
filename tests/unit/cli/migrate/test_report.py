"""What `crdkeeper migrate` says at its end."""

import pytest

from crdkeeper.cli.migrate.report import report
from tests.unit.operations.migration.fleet import Fleet, migrate


@pytest.mark.parametrize("number", [1, 3])
def test_what_was_left_alone_is_named_once(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fleet(number)
    spec = {"resource": {"group": "other.example.com", "resource": "things"}, "mode": "Later"}
    fleet.migrations["newer"] = {"metadata": {"name": "newer"}, "spec": spec}
    attempts, _ = migrate(fleet)

    assert report(attempts, "text", several=number > 1) == 0

    assert capsys.readouterr().err == "StorageMigrations of another release were left alone: newer\n"
