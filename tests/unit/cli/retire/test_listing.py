"""`crdkeeper retire status`: what another release of crdkeeper has written does not end it."""

from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli.retire import listing
from tests.unit.controllers.fakeapi import OURS, FakeApi
from tests.unit.core.retirement.cases import owner

OLD = owner().to_object()
NEWER = {**OLD, "metadata": {"name": "newer"}, "spec": {**OLD["spec"], "mode": "Later"}}


def status(monkeypatch: pytest.MonkeyPatch, *retirements: dict[str, Any], name: str = "") -> Result:
    """Run it where these exist; all of them are to be shown, or the one of that name."""
    objects = {f"{OURS}/versionretirements/{each['metadata']['name']}": each for each in retirements}
    monkeypatch.setattr(listing, "Client", lambda _: nullcontext(FakeApi(objects)))
    return CliRunner().invoke(listing.status, [name] if name else [])


def test_the_others_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    result = status(monkeypatch, OLD, NEWER)
    assert result.exit_code == 0, result.output
    assert [each.split()[0] for each in result.stdout.splitlines()] == ["NAME", "old"]
    assert result.stderr == "VersionRetirements of another release are not shown: newer\n"


def test_without_others_it_does_not_say_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    result = status(monkeypatch, NEWER)
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert result.stderr == "VersionRetirements of another release are not shown: newer\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("newer", "VersionRetirement newer is of another release, and this one cannot read it"),
        ("missing", "no VersionRetirement missing"),
    ],
)
def test_one_that_is_named_and_not_shown_is_an_error(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = status(monkeypatch, OLD, NEWER, name=name)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert result.stderr.splitlines()[-1:] == [f"Error: {said}"]
