"""Rules serve every version of a CRD through the real API server."""

import json
import ssl
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tests.cluster.conversion.rules import RULES, ConversionWebhook
from tests.cluster.harness.crontabs import FULL, CronTabs, until
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError

VERSIONS = ("v1", "v1beta1", "v1alpha1")


def test_every_version_is_served_whatever_is_stored(crontabs: CronTabs, installed: Cluster) -> None:
    for storage in VERSIONS:
        crontabs.store(storage)
        # The API server may still store at the old version for a moment.
        until(partial(_stored, crontabs, installed, storage))
    for storage in VERSIONS:
        for version in VERSIONS:
            assert crontabs.spec(version, f"stored-at-{storage}") == FULL[version], (storage, version)
    listed = {version: crontabs.get(version)["items"] for version in VERSIONS}
    assert all([each["spec"] for each in listed[version]] == [FULL[version]] * 3 for version in VERSIONS)


def test_edits_at_one_version_are_seen_at_the_others_and_lose_nothing(crontabs: CronTabs) -> None:
    crontabs.apply("v1", "mine", FULL["v1"])
    # A controller of the old version reads, changes a field, and writes everything that it knows.
    old = crontabs.get("v1alpha1", "mine")
    old["spec"] |= {"cronSpec": "0 0 * * *", "hostPort": "example.com:80"}
    crontabs.plane.kubectl("replace", "-f", "-", input=json.dumps(old))
    assert crontabs.spec("v1", "mine") == {
        **FULL["v1"],
        "schedule": "0 0 * * *",
        "host": "example.com",
        "port": 80,
    }
    crontabs.plane.kubectl(
        "patch", f"crontabs.v1beta1.{crontabs.group}", "mine", "--type=merge", "-p", '{"spec":{"port":"81"}}'
    )
    assert crontabs.spec("v1alpha1", "mine")["hostPort"] == "example.com:81"


def test_server_side_apply_at_two_versions(crontabs: CronTabs) -> None:
    flags = ("--server-side", "--force-conflicts")
    crontabs.apply("v1", "mine", FULL["v1"], *flags, "--field-manager=new")
    crontabs.apply("v1beta1", "mine", {"cronSpec": "1 1 1 1 1"}, *flags, "--field-manager=old")
    assert crontabs.spec("v1", "mine") == {**FULL["v1"], "schedule": "1 1 1 1 1"}


def test_a_migration_goes_through_it(crontabs: CronTabs, installed: Cluster) -> None:
    crontabs.store("v1alpha1")
    until(partial(_stored, crontabs, installed, "v1alpha1"))
    crontabs.create("v1", {f"many-{i:04}": {**FULL["v1"], "port": i} for i in range(50)})
    crontabs.store("v1")
    command = [
        sys.executable,
        "-m",
        "crdkeeper",
        "migrate",
        f"crontabs.{crontabs.group}",
        "--settle-seconds=2",
    ]
    done = subprocess.run(
        [*command, "--ignore-api-server-leases", f"--kubeconfig={installed.kubeconfig}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert installed.etcd.stored_versions(crontabs.group, "crontabs") == {f"{crontabs.group}/v1": 51}
    specs = [each["spec"] for each in crontabs.get("v1")["items"]]
    assert sorted(spec["port"] for spec in specs) == [*range(50), 1234]
    assert all({**spec, "port": 1234} == FULL["v1"] for spec in specs)


def test_a_list_of_many(crontabs: CronTabs) -> None:
    number = 300
    crontabs.create("v1", {f"many-{i:04}": {**FULL["v1"], "port": i} for i in range(number)})
    ports = [each["spec"]["hostPort"] for each in crontabs.get("v1alpha1")["items"]]
    assert ports == [f"localhost:{i}" for i in range(number)]


def test_an_object_that_a_rule_refuses_is_named_and_the_others_are_served(
    crontabs: CronTabs, webhook: ConversionWebhook
) -> None:
    refusing = [{**each, "refuse": True} if each.get("cast") else each for each in RULES["v1beta1"]]
    webhook.write_rules({**RULES, "v1beta1": refusing})
    crontabs.store("v1beta1")
    until(partial(_applied, crontabs, "v1beta1", "bad", {"port": "http"}))
    crontabs.apply("v1beta1", "good", {"port": "80"})
    assert crontabs.spec("v1", "good") == {"port": 80}
    # The webhook may still have the old rules for a moment.
    until(lambda: "CronTab default/bad: spec.port: a string that is no integer" in _refusal(crontabs, "bad"))


def _refusal(crontabs: CronTabs, name: str) -> str:
    try:
        crontabs.get("v1", name)
    except KubectlError as error:
        return str(error)
    return ""


def test_rules_that_do_not_compile_never_replace_those_that_serve(
    crontabs: CronTabs, webhook: ConversionWebhook
) -> None:
    crontabs.apply("v1", "mine", FULL["v1"])
    webhook.write_rules({**RULES, "v1alpha1": []})
    until(lambda: "are still served" in webhook.process.log.read_text())
    assert crontabs.spec("v1alpha1", "mine") == FULL["v1alpha1"]
    other = [{**RULES["v1alpha1"][1], "join": {**RULES["v1alpha1"][1]["join"], "template": "{host}/{port}"}}]
    webhook.write_rules({**RULES, "v1alpha1": [RULES["v1alpha1"][0], *other, *RULES["v1alpha1"][2:]]})
    until(lambda: crontabs.spec("v1alpha1", "mine")["hostPort"] == "localhost/1234")


def test_a_new_certificate_is_served_without_a_restart(
    crontabs: CronTabs, webhook: ConversionWebhook
) -> None:
    crontabs.apply("v1", "mine", FULL["v1"])
    before = ssl.get_server_certificate(("127.0.0.1", webhook.port))
    webhook.renew()
    crontabs.store("v1")
    until(lambda: ssl.get_server_certificate(("127.0.0.1", webhook.port)) != before)
    # The API server may trust only the old CA for a moment.
    until(lambda: crontabs.spec("v1alpha1", "mine") == FULL["v1alpha1"])


def test_a_webhook_that_cannot_serve_says_so(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    files = [f"--{flag}={tmp_path / 'bad.pem'}" for flag in ("tls-cert-file", "tls-private-key-file")]
    command = [sys.executable, "-m", "crdkeeper", "webhook", f"--rules={tmp_path}", *files]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "cannot serve" in ended.stderr
    assert "Traceback" not in ended.stderr


def _stored(crontabs: CronTabs, plane: Cluster, version: str) -> bool:
    """Whether the object is stored at that version; if not, it is re-created the next time."""
    name, stored = f"stored-at-{version}", f"{crontabs.group}/{version}"
    crontabs.apply("v1", name, FULL["v1"])
    if stored in plane.etcd.stored_versions(crontabs.group, "crontabs"):
        return True
    plane.kubectl("delete", f"crontabs.v1.{crontabs.group}", name)
    return False


def _applied(crontabs: CronTabs, version: str, name: str, spec: dict[str, Any]) -> bool:
    """Whether the only object is stored at that version; if not, it is created anew the next time."""
    crontabs.apply(version, name, spec)
    found = crontabs.plane.etcd.stored_versions(crontabs.group, "crontabs")
    if found == {f"{crontabs.group}/{version}": 1}:
        return True
    crontabs.plane.kubectl("delete", f"crontabs.{version}.{crontabs.group}", name)
    return False
