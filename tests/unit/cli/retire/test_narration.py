"""What `crdkeeper retire` prints about a retirement, also about one whose every name is malicious."""

from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner

from crdkeeper.api.versionretirement import STEPS, VersionRetirement
from crdkeeper.cli import main
from crdkeeper.cli.output.printing import Trouble, lines
from crdkeeper.cli.output.table import table
from crdkeeper.cli.retire.naming import named_version
from crdkeeper.cli.retire.narration import HEADERS, details, row
from tests.unit.builders import crd
from tests.unit.cli.hostile import ALL, assert_harmless

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)
TIME = "2026-11-23T11:00:00Z"


def retirement(text: str = "said", **status: Any) -> VersionRetirement:
    conditions = [
        {"type": each, "status": "False", "reason": "Why", "message": text, "lastTransitionTime": TIME}
        for each in (*STEPS, "Ready")
    ]
    evidence = {
        "takenTime": TIME,
        "complete": True,
        "counted": 5000,
        "objects": 60,
        "failure": text,
        "writers": [
            {"manager": text, "operation": "Update", "namespace": text, "objects": 3, "lastTime": TIME}
        ],
        "writerCount": 53,
        "readers": [{"what": text, "since": TIME}],
        "owners": [{"tool": text, "manager": text, "detail": text}],
        "unknown": [text],
    }
    holds = [{"step": "NotServed", "reason": text, "name": text, "message": text}]
    return VersionRetirement.model_validate(
        {
            "metadata": {"name": text, "creationTimestamp": TIME},
            "spec": {"resource": {"group": "example.com", "resource": "widgets"}, "version": "v1"},
            "status": {
                "conditions": conditions,
                "evidence": evidence,
                "holds": holds,
                "holdCount": 2,
                **status,
            },
        }
    )


def test_the_due_change_can_be_pasted_into_a_shell() -> None:
    due = {"step": "NotServed", "message": "Do.", "patch": '[{"value": "it\'s"}]', "manifest": "a:\n  b\n"}
    shown = list(details(retirement(due=due)))
    assert shown[-6:] == [
        "Due: Do.",
        "In the manifest:",
        "  a:",
        "    b",
        "Or:",
        '  kubectl patch crd widgets.example.com --type=json -p \'[{"value": "it\'"\'"\'s"}]\'',
    ]


def test_what_the_migration_is_to_be_is_no_part_of_the_manifest_of_the_crd() -> None:
    found = retirement(due={"step": "Migrated", "message": "Migrate.", "manifest": "a: b\n"})
    assert [*details(found)][-3:] == ["Due: Migrate.", "The manifest of the StorageMigration:", "  a: b"]


def test_it_says_why_a_change_that_is_due_is_not_made() -> None:
    found = retirement(due={"step": "NotServed", "message": "Do."})
    assert list(details(found))[-2:] == ["", "Due: Do."]  # a command's own says nothing else
    found.metadata.uid = "1"
    assert list(details(found))[-4:] == ["", "Why: said", "", "Due: Do."]


def test_what_is_not_listed_is_counted() -> None:
    shown = "\n".join(details(retirement()))
    assert "Named by managedFields of 60 of 5,000 objects, 2026-11-23T11:00:00Z." in shown
    assert "… and 52 more writers" in shown
    assert "… and 1 more hold" in shown


def test_nothing_is_left_to_say_about_a_version_that_is_gone() -> None:
    found = retirement()
    for each in found.status.conditions:
        each.status = "True"
    assert len(list(details(found))) == 2 + 1 + len(STEPS)


def test_a_row() -> None:
    assert row(retirement(), NOW) == [
        "said",
        "widgets.example.com",
        "v1",
        "Plan",
        "",
        "53",
        "False",
        "Why",
        "60m",
    ]


def test_nothing_malicious_reaches_a_terminal(capsys: Any) -> None:
    hostile = retirement(ALL, due={"step": "Removed", "message": ALL, "patch": ALL, "manifest": ALL})
    lines(details(hostile))
    lines(table(HEADERS, [row(hostile, NOW)]))
    assert_harmless(capsys.readouterr().out)


def test_arguments_that_begin_with_no_command_name_a_resource() -> None:
    found = CliRunner().invoke(main, ["retire", "widgets", "v1"])
    assert found.exit_code == 2
    assert "'widgets' is no resource of a CRD: write PLURAL.GROUP." in found.output
    for args in (["retire", "widgets.example.com", "V1"], ["retire", "undo", "widgets.example.com", "../x"]):
        found = CliRunner().invoke(main, args)
        assert (found.exit_code, "VERSION is not valid: write a version" in found.output) == (2, True)
    for each in ("soon", "", "3d"):
        period = CliRunner().invoke(main, ["retire", "widgets.example.com", "v1", f"--quiet-period={each}"])
        assert "--quiet-period is not valid: write hours, minutes and seconds, such as 168h" in period.output


def test_waiting_is_for_those_who_change_something() -> None:
    found = CliRunner().invoke(main, ["retire", "widgets.example.com", "v1", "--wait"])
    assert (found.exit_code, "--wait requires --yes" in found.output) == (2, True)


def test_a_mistyped_version_is_not_a_removed_one() -> None:
    named_version(crd(), "v1")
    with pytest.raises(Trouble, match="has no version v3: its versions are v1, v2"):
        named_version(crd(), "v3")
