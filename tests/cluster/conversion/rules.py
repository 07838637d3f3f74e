"""The CronTab of Kubernetes' documentation in three versions, and `crdkeeper webhook` to convert it."""

import base64
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.harness.preloaded import crdkeeper
from tests.controlplane import pki
from tests.controlplane.ports import Ports
from tests.controlplane.probe import answers

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
CONTAINER = {"name": STRING, "image": STRING}
SPECS: dict[str, dict[str, Any]] = {
    "v1": {
        "host": STRING,
        "port": INTEGER,
        "schedule": STRING,
        "replicas": INTEGER,
        "containers": {
            "type": "array",
            "items": {"type": "object", "required": ["name"], "properties": {**CONTAINER, "memory": STRING}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    },
    "v1beta1": {
        "host": STRING,
        "port": STRING,
        "cronSpec": STRING,
        "replicas": INTEGER,
        "containers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {**CONTAINER, "memoryMiB": INTEGER},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    },
    "v1alpha1": {
        "hostPort": STRING,
        "cronSpec": STRING,
        "containers": {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": {"image": STRING}},
        },
    },
}
RULES: dict[str, list[dict[str, Any]]] = {
    "v1beta1": [
        {"hub": "spec.schedule", "spoke": "spec.cronSpec"},
        {"hub": "spec.port", "spoke": "spec.port", "cast": True},
        {
            "hub": "spec.containers",
            "spoke": "spec.containers",
            "each": [{"hub": "memory", "spoke": "memoryMiB", "quantity": "Mi"}],
        },
    ],
    "v1alpha1": [
        {"hub": "spec.schedule", "spoke": "spec.cronSpec"},
        {
            "spoke": "spec.hostPort",
            "join": {"template": "{host}:{port}", "parts": {"host": "spec.host", "port": "spec.port"}},
        },
        {"hub": "spec.replicas", "aside": True},
        {
            "hub": "spec.containers",
            "spoke": "spec.containers",
            "key": "name",
            "each": [{"hub": "memory", "aside": True}],
        },
    ],
}


def crontab_definition(
    group: str, *, storage: str, client_config: dict[str, Any], specs: Mapping[str, dict[str, Any]] = SPECS
) -> dict[str, Any]:
    """The CRD, converted by that webhook; `specs` has the fields of each version."""
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": fields}},
                }
            },
        }
        for name, fields in specs.items()
    ]
    names = {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "listKind": "CronTabList"}
    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"crontabs.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def rules_of(group: str, rules: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The VersionConversion between the versions."""
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": f"crontabs.{group}"},
        "spec": {
            "resource": {"group": group, "resource": "crontabs"},
            "hub": "v1",
            "spokes": [{"version": name, "rules": each} for name, each in rules.items()],
        },
    }


class ConversionWebhook:
    """`crdkeeper webhook` as a process, with its own rules directory and certificate."""

    def __init__(
        self,
        directory: Path,
        group: str,
        *,
        max_bytes: int = 1 << 20,
        specs: Mapping[str, dict[str, Any]] = SPECS,
    ) -> None:
        self.directory, self.specs = directory, specs
        self._group = group
        self._ports = Ports()
        self.port, self.probe_port = self._ports.take(), self._ports.take()
        self.rules = directory / "rules"
        self.rules.mkdir()
        self.certificate, self.key = directory / "tls.crt", directory / "tls.key"
        self.ca_file = directory / "ca.crt"
        self.write_rules(RULES)
        self.renew()
        self.process = crdkeeper(
            "conversion",
            {
                "rules": str(self.rules),
                "tls-cert-file": str(self.certificate),
                "tls-private-key-file": str(self.key),
                "listen": f"127.0.0.1:{self.port}",
                "probe-port": str(self.probe_port),
                "max-request-bytes": str(max_bytes),
                "drain-seconds": "0",
            },
            arguments=("webhook",),
            directory=directory,
            ready=partial(answers, self.probe_port, "/readyz"),
        )

    @property
    def client_config(self) -> dict[str, Any]:
        """How the API server reaches it."""
        bundle = base64.b64encode(self.ca_file.read_bytes()).decode()
        return {"url": f"https://127.0.0.1:{self.port}/convert/crontabs.{self._group}", "caBundle": bundle}

    def write_rules(self, rules: dict[str, list[dict[str, Any]]]) -> None:
        """Put these rules and the CRD into the directory."""
        definition = crontab_definition(
            self._group,
            storage="v1",
            client_config={"url": "https://example.com/"},
            specs=self.specs,
        )
        documents = [definition, rules_of(self._group, rules)]
        # At once: the webhook may look at any moment, and half of the rules are others.
        written = self.directory / "rules.new"
        written.write_text(yaml.safe_dump_all(json.loads(json.dumps(documents))))
        written.replace(self.rules / "all.yaml")

    def renew(self) -> None:
        """A new certificate of a new CA; clients trust the old CA and the new one."""
        secrets = pki.create(self.directory / f"pki-{len(list(self.directory.glob('pki-*')))}")
        old = self.ca_file.read_bytes() if self.ca_file.exists() else b""
        self.ca_file.write_bytes(secrets.ca_file.read_bytes() + old)
        self.key.write_bytes(secrets.serving_key.read_bytes())
        self.certificate.write_bytes(secrets.serving_certificate.read_bytes())

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.process.start()
        self.process.wait_ready()

    def close(self) -> None:
        """End it."""
        self.process.stop()
        self._ports.close()
