"""A CronTab's CRD without conversion, and its VersionConversion: shared by tests of the controller."""

import json
import time
from collections.abc import Callable
from typing import Any, Final

from tests.cluster.conversion.rules import crontab_definition, rules_of
from tests.cluster.harness.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError

SECONDS: Final = 120.0
V1: Final[dict[str, Any]] = {
    "host": "localhost",
    "port": 1234,
    "schedule": "* * * * */5",
    "replicas": 3,
    "containers": [{"name": "web", "image": "nginx", "memory": "1Gi"}],
}
V1ALPHA1: Final[dict[str, Any]] = {
    "hostPort": "localhost:1234",
    "cronSpec": "* * * * */5",
    "containers": {"web": {"image": "nginx"}},
}


class Scene:
    """The CronTab's CRD without conversion, and its VersionConversion."""

    def __init__(self, plane: Cluster, group: str) -> None:
        self.plane, self.group, self.name = plane, group, f"crontabs.{group}"
        self.apply_definition("v1")
        until(self.served)
        self.grant()

    def apply(self, *objects: dict[str, Any], flags: tuple[str, ...] = ("--server-side",)) -> None:
        body = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.plane.kubectl("apply", *flags, "-f", "-", input=body)

    def served(self, version: str = "v1") -> bool:
        """Whether clients can discover a version of the CRD and read it: later than it is established."""
        try:
            self.plane.kubectl("get", f"crontabs.{version}.{self.group}")
        except KubectlError:
            return False
        return True

    def apply_definition(self, storage: str, **changes: Any) -> None:
        definition = crontab_definition(self.group, storage=storage, client_config={})
        definition["spec"].pop("conversion")
        definition["spec"].update(changes)
        self.apply(definition)

    def grant(self) -> None:
        """Let the operator convert and read, like manifests/samples/converter-role.yaml."""
        self.opt_in()
        self.let_read()

    def opt_in(self) -> None:
        """Let the operator convert the CRD."""
        rule = {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "resourceNames": [self.name],
            "verbs": ["patch"],
        }
        self._apply_role("convert", "converter", rule)

    def let_read(self) -> None:
        """Let the operator read the objects."""
        self._role("read", "reader", ["get", "list"])

    def _role(self, name: str, aggregate: str, verbs: list[str]) -> None:
        self._apply_role(name, aggregate, {"apiGroups": [self.group], "resources": ["*"], "verbs": verbs})

    def _apply_role(self, name: str, aggregate: str, rule: dict[str, list[str]]) -> None:
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": f"{name}-{self.group}",
                "labels": {f"rbac.crdkeeper.dev/aggregate-to-{aggregate}": "true"},
            },
            "rules": [rule],
        }
        self.apply(role)

    def convert(self, rules: dict[str, list[dict[str, Any]]], **spec: Any) -> None:
        document = rules_of(self.group, rules)
        document["spec"].update(spec)
        self.apply(document)

    def create(self, version: str, name: str, spec: dict[str, Any]) -> None:
        metadata = {"name": name, "namespace": "default"}
        body = {
            "apiVersion": f"{self.group}/{version}",
            "kind": "CronTab",
            "metadata": metadata,
            "spec": spec,
        }
        self.apply(body, flags=())

    def post(self, version: str, name: str, spec: dict[str, Any], **metadata: Any) -> None:
        """Create it unchanged; `kubectl apply` would also keep all of it in an annotation."""
        body = {
            "apiVersion": f"{self.group}/{version}",
            "kind": "CronTab",
            "metadata": {"name": name, "namespace": "default", **metadata},
            "spec": spec,
        }
        self.plane.kubectl("create", "-f", "-", input=json.dumps(body))

    def spec(self, version: str, name: str) -> Any:
        resource = f"crontabs.{version}.{self.group}"
        return json.loads(self.plane.kubectl("get", resource, name, "-o", "json"))["spec"]

    def wait(self, condition: str, status: str, reason: str | None = None) -> dict[str, Any]:
        """The VersionConversion once it has that condition for its current generation."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = json.loads(self.plane.kubectl("get", "vconv", self.name, "-o", "json"))
            for each in (found.get("status") or {}).get("conditions") or ():
                current = each["observedGeneration"] == found["metadata"]["generation"]
                reported = (each["type"], each["status"]) == (condition, status)
                if reported and current and reason in (None, each["reason"]):
                    return found | {"message": each["message"]}
            return None

        found: dict[str, Any] = until(
            look, lambda: self.plane.kubectl("get", "vconv", self.name, "-o", "yaml")
        )
        return found

    def ready(self) -> dict[str, Any]:
        return self.wait("Ready", "True")

    def conversion(self) -> Any:
        crd = json.loads(self.plane.kubectl("get", "crd", self.name, "-o", "json"))
        return crd["spec"]["conversion"]

    def convert_at(self, **client_config: Any) -> None:
        """Have the CRD converted by a webhook, whoever that is."""
        config = dict.fromkeys(("url", "service", "caBundle")) | client_config
        patch = json.dumps({"spec": {"conversion": {"webhook": {"clientConfig": config}}}})
        self.plane.kubectl("patch", "crd", self.name, "--type=merge", f"--patch={patch}")

    def answers(self, version: str, name: str) -> Any:
        """The spec at that version; None if it cannot be read at present."""
        try:
            return self.spec(version, name)
        except KubectlError:
            return None

    def versions(self) -> list[dict[str, Any]]:
        """The CRD's versions at the beginning."""
        versions: list[dict[str, Any]] = crontab_definition(self.group, storage="v1", client_config={})[
            "spec"
        ]["versions"]
        return versions

    def until_allowed(self, verb: str, resource: str, *, allowed: bool = True) -> None:
        """Return once the operator has that right, or no more: roles count a little later."""
        account = self.plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)

        def known() -> bool:
            said = self.plane.kubectl("auth", "can-i", verb, resource, "-A", kubeconfig=account, check=False)
            return said.startswith("yes" if allowed else "no")

        until(known)

    def allow_rewriting(self) -> None:
        """Let the operator migrate the objects."""
        self._role("rewrite", "rewriter", ["get", "list", "patch"])

    def remove(self) -> None:
        self.plane.kubectl("delete", "crd", self.name, "--timeout=120s", check=False)
        # Without an operator, nothing would report that it is no longer in use.
        status = ("--subresource=status", "--type=merge", '--patch={"status":{"conditions":[]}}')
        self.plane.kubectl("patch", "vconv", self.name, *status, check=False)
        self.plane.kubectl("delete", "vconv", self.name, "--timeout=120s", "--ignore-not-found", check=False)
        roles = [f"{each}-{self.group}" for each in ("convert", "read", "rewrite")]
        self.plane.kubectl("delete", "clusterrole", *roles, "--ignore-not-found", check=False)


def until(look: Callable[[], Any], otherwise: Callable[[], str] = str) -> Any:
    deadline = time.monotonic() + SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"it never came to be: {otherwise()}"
        time.sleep(0.1)
    return found
