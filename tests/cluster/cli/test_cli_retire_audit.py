"""`crdkeeper retire --audit-log`: the audit log of a real API server names who reads a version."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.cluster.cli.commandline import CommandLine
from tests.cluster.harness import Admin, CustomKind, eventually, outdated
from tests.controlplane.plane import ControlPlane

READER = "reporting"
POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}


async def test_a_reader_is_named_and_begins_the_quiet_period_again(
    start_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    policy, log = tmp_path / "policy.json", tmp_path / "audit.log"
    policy.write_text(json.dumps(POLICY))
    flags = {"audit-policy-file": str(policy), "audit-log-path": str(log)}
    plane = start_plane(extra_apiserver_flags=flags, users={READER: ()})
    plane.kubectl("create", "clusterrolebinding", READER, "--clusterrole=cluster-admin", f"--user={READER}")
    kind = CustomKind("audited.example.com")
    shell = CommandLine(plane.kubeconfig, tmp_path / "shell")
    command = ("retire", kind.name, "v1", "--quiet-period=1h", f"--audit-log={log}")
    async with Admin(plane) as admin:
        await outdated(admin, kind, 2, opt_in=False)
        try:
            assert (await shell.run(*command, "--yes")).exit_code == 3  # deprecated, and not quiet yet
            reader = plane.kubeconfig_for(READER, token=plane.pki.tokens[READER])

            async def has_read() -> bool:
                said = plane.kubectl("get", f"{kind.plural}.v1.{kind.group}", kubeconfig=reader, check=False)
                # The API server warns as soon as it knows of the deprecation.
                return "db-00000" in said and "deprecated" in said

            await eventually(has_read, otherwise=lambda: f"{READER} does not read")
            done = await shell.run(*command, "--yes")
            document = json.loads((await shell.run(*command, "-o", "json")).stdout)
        finally:
            shell.close()

    assert done.exit_code == 3, done.stderr
    rows = [each.split() for each in done.stdout.splitlines()]
    (row,) = (each for each in rows if each[:2] == [READER, "client"])
    assert row[2].startswith("kubectl/")
    # Our own look at the objects is at v2; the admin's objects were written at v1.
    assert any(each[:2] == ["admin", "crdkeeper"] and int(each[5]) >= 2 for each in rows)
    assert f"by {READER}, as an audit log shows" in done.stdout
    found = document["status"]["evidence"]["auditLog"]
    assert READER in {each["user"] for each in found["requesters"]}
    # The API server may be writing a line while it is read.
    assert (found["unreadableLines"] <= 2, found["tooLongLines"]) == (True, 0)
    lines = log.read_text(encoding="utf-8").rpartition("\n")[0]
    events = [json.loads(each) for each in lines.split("\n")]
    mine = [
        each
        for each in events
        if each["user"]["username"] == READER and (each.get("objectRef") or {}).get("apiVersion") == "v1"
    ]
    # The API server marks requests at deprecated versions itself.
    assert any((each.get("annotations") or {}).get("k8s.io/deprecated") == "true" for each in mine)
