"""On the real API server: who can write an object at one version cannot choose what is read at another.

`conversion.crdkeeper.dev/<version>` is an annotation like any other, so tenants can write it.
"""

import json
import urllib.request
from functools import partial
from typing import Any

from crdkeeper.core.conversion.notes import PREFIX
from tests.cluster.conversion.rules import ConversionWebhook
from tests.cluster.harness.crontabs import FULL, CronTabs, until

WEB = ["spec", "containers", "web"]
FORGED: dict[str, list[dict[str, Any]]] = {
    "value": [{"at": ["spec", "hostPort"], "was": "evil.example.com:1", "is": "localhost:1234"}],
    "name": [{"at": ["metadata", "name"], "was": "another", "is": "name"}],
    "namespace": [{"at": ["metadata", "namespace"], "was": "kube-system", "is": "default"}],
    "kind": [{"at": ["kind"], "was": "Secret", "is": "CronTab"}],
    "version": [{"at": ["apiVersion"], "was": "v1"}],
    "metadata": [{"at": ["metadata", "annotations", "evil"], "was": 1}, {"at": ["metadata"], "was": 1}],
    "undeclared": [{"at": ["spec", "evil"], "was": "evil"}, {"at": [*WEB, "evil"], "was": "evil"}],
    "type": [{"at": [*WEB, "image"], "was": {"evil": 1}, "is": "nginx"}],
}


def forged(
    crontabs: CronTabs, version: str, name: str, target: str, entries: list[dict[str, Any]]
) -> dict[str, Any]:
    value = crontabs.object(version, name, FULL[version])
    value["metadata"]["annotations"] = {PREFIX + target: json.dumps({"fields": entries, "order": 2**64 - 1})}
    return value


def create(crontabs: CronTabs, *objects: dict[str, Any]) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    until(partial(crontabs.plane.kubectl, "apply", "-f", "-", input=body))


def test_neither_values_nor_identities_can_be_forged(crontabs: CronTabs, webhook: ConversionWebhook) -> None:
    create(crontabs, *(forged(crontabs, "v1", name, "v1alpha1", each) for name, each in FORGED.items()))
    for name in FORGED:
        assert crontabs.spec("v1alpha1", name) == FULL["v1alpha1"], name
    resource = f"crontabs.v1alpha1.{crontabs.group}"
    listed = json.loads(crontabs.plane.kubectl("get", resource, "--all-namespaces", "-o", "json"))["items"]
    assert {each["metadata"]["name"]: each["spec"] for each in listed} == dict.fromkeys(
        FORGED, FULL["v1alpha1"]
    )
    assert {(each["kind"], each["metadata"]["namespace"]) for each in listed} == {("CronTab", "default")}
    with urllib.request.urlopen(f"http://127.0.0.1:{webhook.probe_port}/metrics") as answer:
        text = answer.read().decode()
    counted = f'crdkeeper_conversion_ignored_aside_total{{resource="crontabs.{crontabs.group}"}}'
    (count,) = (float(line.split()[-1]) for line in text.splitlines() if line.startswith(counted))
    assert count >= sum(map(len, FORGED.values()))


def test_what_is_written_at_a_version_that_lacks_a_field_fits_the_schema_of_the_field(
    crontabs: CronTabs,
) -> None:
    entries: dict[str, list[dict[str, Any]]] = {
        "fits": [{"at": ["spec", "replicas"], "was": 7}],
        "misfits": [{"at": ["spec", "replicas"], "was": "many"}, {"at": ["spec", "host"], "was": "evil"}],
    }
    create(crontabs, *(forged(crontabs, "v1alpha1", name, "v1", each) for name, each in entries.items()))
    # Fields that v1alpha1 lacks can be chosen by who writes at v1alpha1: within the schema.
    assert crontabs.spec("v1", "fits")["replicas"] == 7
    misfit = crontabs.spec("v1", "misfits")
    assert "replicas" not in misfit
    assert (misfit["host"], misfit["port"]) == ("localhost", 1234)
