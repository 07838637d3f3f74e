"""`crdkeeper status`: what another release of crdkeeper has written does not end it."""

from contextlib import nullcontext
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli.status import command
from tests.unit.builders import NAME, crd
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi


def run(monkeypatch: pytest.MonkeyPatch, objects: dict[str, dict[str, Any]], *arguments: str) -> Result:
    monkeypatch.setattr(command, "Client", lambda _: nullcontext(FakeApi(objects)))
    return CliRunner().invoke(command.status, arguments)


def migration(name: str, mode: str = "Execute") -> dict[str, Any]:
    resource = {"group": "example.com", "resource": "widgets"}
    return {"metadata": {"name": name}, "spec": {"resource": resource, "mode": mode}}


def first_cells(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [each.split()[0] for each in result.stdout.splitlines()]


def test_crds_are_shown_without_migrations_of_another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    objects: dict[str, dict[str, Any]] = {
        f"{DEFINITIONS}/{NAME}": crd(),
        f"{OURS}/storagemigrations/readable": migration("readable"),
        f"{OURS}/storagemigrations/newer": migration("newer", "Later"),
    }
    result = run(monkeypatch, objects)
    assert first_cells(result) == ["NAME", NAME]
    assert "readable" in result.stdout
    assert result.stderr == "StorageMigrations of another release are not shown: newer\n"


def test_built_in_resources_are_shown_without_policies_of_another_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = {
        "name": "secrets",
        "kind": "Secret",
        "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        "storageVersionHash": "hash",
    }
    objects: dict[str, dict[str, Any]] = {
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.": {"spec": {"version": "v1"}},
        "/api/v1": {"resources": [secrets]},
        f"{OURS}/builtinpolicies/newer": {
            "metadata": {"name": "newer"},
            "spec": {"resources": ["secrets"], "mode": "Later"},
        },
    }
    result = run(monkeypatch, objects, "--builtins")
    assert first_cells(result) == ["NAME", "secrets"]
    assert result.stderr == "BuiltinPolicies of another release are not shown: newer\n"


def test_of_many_only_some_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = {f"{OURS}/storagemigrations/m{each}": migration(f"m{each}", "Later") for each in range(10, 33)}
    result = run(monkeypatch, {f"{DEFINITIONS}/{NAME}": crd(), **newer})
    assert first_cells(result) == ["NAME", NAME]
    assert "m10, m11," in result.stderr
    assert result.stderr.endswith(" m28, m29 and 3 more\n")
