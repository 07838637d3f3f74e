"""The files of `crdkeeper retire --audit-log`, and what is printed about them."""

import asyncio
import json
import os
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from crdkeeper.cli import main
from crdkeeper.cli.output.printing import Trouble, as_json, lines
from crdkeeper.cli.retire.auditlogs import LONGEST, AuditLogs, lines_of
from crdkeeper.cli.retire.narration import audited_object, details
from crdkeeper.core.retirement.auditlog import AuditTally
from tests.unit.cli.hostile import ALL, assert_harmless
from tests.unit.cli.retire.test_narration import retirement
from tests.unit.core.retirement.test_auditlog import event, uses


def logs(*files: Path | str) -> AuditLogs:
    return AuditLogs([str(each) for each in files], AuditTally("example.com", "v1alpha1", "dbs"))


def written(path: Path, *users: str) -> Path:
    path.write_text("".join(f"{json.dumps(event(each))}\n" for each in users))
    return path


def test_a_line_that_is_too_long_is_skipped_and_the_next_one_read() -> None:
    stream = BytesIO(b"a\n" + b"x" * LONGEST + b"\n" + b"x" * (3 * LONGEST) + b"\nb\n" + b"y" * (LONGEST + 1))
    assert [each and len(each) for each in lines_of(stream)] == [2, LONGEST + 1, None, 2, None]


def test_several_files_are_read_and_read_again_as_they_are_then(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one", "ann"), written(tmp_path / "other", "bob")
    found = logs(one, other, one)
    assert not found.has_pipes
    assert {each.user for each in asyncio.run(found.read()).requesters} == {"ann", "bob"}
    written(one, "ann", "eve")
    again = asyncio.run(found.read())
    assert {each.user: each.reads for each in again.requesters} == {"ann": 1, "bob": 1, "eve": 1}
    assert found.uses == again


def test_a_pipe_is_read_once_and_not_forgotten(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "w") as stream:
        stream.write(json.dumps(event("piped")))
    found = logs(f"/dev/fd/{ours}", written(tmp_path / "one", "ann"))
    assert found.has_pipes
    found.read_pipes()
    os.close(ours)
    for _ in range(2):
        assert {each.user for each in asyncio.run(found.read()).requesters} == {"piped", "ann"}


def test_what_is_no_audit_log_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no\nlog\n")
    with pytest.raises(Trouble, match=r"no event of audit\.k8s\.io/v1"):
        asyncio.run(logs(tmp_path / "text").read())
    with pytest.raises(Trouble, match="No such file"):
        logs(tmp_path / "none")
    with pytest.raises(Trouble, match="Is a directory"):
        logs(tmp_path).read_pipes()
    (tmp_path / "empty").touch()  # just rotated
    assert asyncio.run(logs(tmp_path / "empty").read()).events == 0


def test_waiting_needs_files_that_can_be_read_again() -> None:
    command = ["retire", "dbs.example.com", "v1alpha1", "--yes", "--wait", "--audit-log=-"]
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, "needs files" in done.output) == (2, True)


def test_it_says_who_and_what_was_left_out() -> None:
    found = replace(uses(event(), event(code=404), b"x", event("bob", verb="patch")), requester_count=9)
    said = [" ".join(each.split()) for each in details(retirement(), found)]
    at = said.index("USER WHOSE PROGRAM NAMESPACE READS WRITES LAST")
    assert said[at - 1] == (
        "Requests at v1 in the audit log, which has 3 events from 2026-11-23T11:00:00Z "
        "to 2026-11-23T11:00:00Z:"
    )
    assert said[at + 1 : at + 6] == [
        "ann client kubectl/v1.37.0 - 1 0 2026-11-23T11:00:00Z",
        "bob client kubectl/v1.37.0 - 0 1 2026-11-23T11:00:00Z",
        "… and 7 more users",
        "1 request failed, not shown above.",
        "1 line skipped, no event of audit.k8s.io/v1.",
    ]
    assert audited_object(found)["requesters"][1]["writes"] == 1


def test_names_in_it_act_as_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = event(ALL, userAgent=ALL, impersonatedUser={"username": ALL})
    hostile["objectRef"]["namespace"] = ALL
    lines(details(retirement(), uses(hostile)))
    assert_harmless(capsys.readouterr().out)
    assert_harmless(as_json(audited_object(uses(hostile))), markup=False)
