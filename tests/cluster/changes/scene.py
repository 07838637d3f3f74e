"""A CRD with objects, a policy that judges its changes, and kubectl by which somebody changes it."""

import asyncio
import copy
import http.client
import json
import ssl
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.harness import NAMESPACE, Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CLUSTER_ROLES, FIELD_MANAGER, POLICIES
from tests.cluster.harness.customkind import SPEC
from tests.cluster.harness.installation import MANIFESTS
from tests.cluster.harness.webhookpod import WebhookPod
from tests.controlplane.cluster import Cluster

CHANGES: Final = MANIFESTS / "changes"
CONFIGURATION: Final = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/crdkeeper-changes"
)
ALLOW: Final = "crdkeeper.dev/allow-change"
LATE: Final = "no time to examine this change", "to compare in time", "no time for more"
"""Warnings of a webhook that lacked the time."""
Json = dict[str, Any]


@contextmanager
def judging(installed: Cluster, pod: WebhookPod, **arguments: Any) -> Iterator[Operator]:
    """An operator with that webhook, which has the rights for changes; `arguments` are those of Operator."""
    installed.kubectl("apply", "--server-side", "--force-conflicts", f"--kustomize={CHANGES}")
    flags = {"webhook-url": pod.url, **arguments.pop("flags", {})}
    operator = Operator(installed, flags=flags, **arguments)
    try:  # one that is left would keep the Lease from those of other modules
        operator.start()
        pod.start()
        yield operator
    finally:
        operator.close()
        installed.kubectl("delete", f"--kustomize={CHANGES}", "--ignore-not-found", check=False)


def without(field: str) -> Json:
    """The schema of spec without that field."""
    spec = copy.deepcopy(SPEC)
    del spec["properties"][field]
    return spec


def enum(*values: str) -> Json:
    """The schema of spec in which engine is one of these."""
    spec = copy.deepcopy(SPEC)
    spec["properties"]["engine"]["enum"] = list(values)
    return spec


class Waits(NamedTuple):
    """What an API server counts of our webhook, since it started."""

    given_up: float
    """Requests that it let pass because there was no answer in time."""
    seconds: float
    """How long it has waited."""


class Scene:
    """Databases of one group."""

    def __init__(self, admin: Admin, group: str, pod: WebhookPod) -> None:
        self.admin = admin
        self.kind = CustomKind(group)
        self.pod = pod
        self.kubectl = admin.cluster.kubectl

    async def let_read(self) -> None:
        """Let the webhook list the objects, like manifests/samples/changes-role.yaml."""
        name = f"changes-{self.kind.group}"
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"rbac.crdkeeper.dev/aggregate-to-changes": "true"}},
            "rules": [{"apiGroups": [self.kind.group], "resources": ["*"], "verbs": ["list"]}],
        }
        await self.admin.create(CLUSTER_ROLES, role)

    async def until_denied(self, right: Right, account: str) -> None:
        """Returns once the API server denies that to an account, which it does some time after a change."""
        kubeconfig = self.admin.cluster.service_account_kubeconfig(NAMESPACE, account)
        async with Client(Connection(kubeconfig)) as client:

            async def denied() -> bool:
                return bool(await missing_rights(client, [right]))

            await eventually(denied, otherwise=lambda: f"{account} may still {right}")

    async def judge(self, mode: str, **spec: Any) -> None:
        """Have a policy judge changes of the group; returns once it is in force."""
        name = self.kind.group
        body = {
            "apiVersion": "crdkeeper.dev/v1alpha1",
            "kind": "DefinitionPolicy",
            "metadata": {"name": name},
            "spec": {"groups": [name], "changes": mode, "storageMigration": {"mode": "Disabled"}, **spec},
        }
        with suppress(ApiError):
            await self.admin.delete(f"{POLICIES}/{name}")
        await self.admin.create(POLICIES, body)
        await self.condition("ChangesJudged", "True")

    async def condition(self, type_: str, status: str) -> Json:
        """The policy's condition, once it has that status for its current generation."""
        path = f"{POLICIES}/{self.kind.group}"
        found: Json = {}

        async def look() -> Json | None:
            nonlocal found
            found = await self.admin.get(path)
            for each in (found.get("status") or {}).get("conditions") or ():
                current = each["observedGeneration"] == found["metadata"]["generation"]
                if current and (each["type"], each["status"]) == (type_, status):
                    return dict(each)
            return None

        return await eventually(look, otherwise=lambda: json.dumps(found.get("status")))

    def apply(self, kind: CustomKind, *flags: str, annotations: Json | None = None) -> str:
        """What `kubectl apply` says, warnings and errors included."""
        document = kind.to_object()
        document["metadata"]["annotations"] = annotations or {}
        command = ("apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}", *flags)
        return self.kubectl(*command, "-f", "-", input=json.dumps(document), check=False)

    async def until_said(
        self, text: str, kind: CustomKind, annotations: Json | None = None, *, also: str = ""
    ) -> str:
        """What a dry run says, once it has both texts: on a busy machine the webhook may lack the time."""
        said = ""

        async def look() -> bool:
            nonlocal said
            said = self.apply(kind, "--dry-run=server", annotations=annotations)
            return text in said and also in said

        await eventually(look, otherwise=lambda: said)
        return said

    async def said_in_time(self, kind: CustomKind) -> str:
        """What a dry run says, once the webhook does not lack the time."""
        said = ""

        async def look() -> bool:
            nonlocal said
            said = self.apply(kind, "--dry-run=server")
            return not any(each in said for each in LATE)

        await eventually(look, otherwise=lambda: said)
        return said

    async def waits(self) -> Waits:
        """How long the API server has waited for the webhook so far."""
        answer = await self.admin.client.send("GET", "/metrics", accept="text/plain")
        found = {"fail_open_count": 0.0, "admission_duration_seconds_sum": 0.0}
        for family in text_string_to_metric_families(answer.content.decode()):
            for each in family.samples:
                name = each.name.removeprefix("apiserver_admission_webhook_").removesuffix("_total")
                if name in found and each.labels.get("name") == "changes.crdkeeper.dev":
                    found[name] += each.value
        return Waits(*found.values())

    async def change_during(self, work: Coroutine[Any, Any, None], seed: int = 0) -> int:
        """Change the CRD again and again until the work is done; returns how many changes passed.

        Nothing but a policy may refuse one, and none of these harmless ones.
        """
        working = asyncio.create_task(work)
        harmful = self.kind.changed("v1", spec=enum("postgres"))
        number = 0
        try:
            while not working.done():
                number += 1
                harmless = self.kind.changed("v1", spec={**SPEC, "description": f"number {number}"})
                said = await asyncio.to_thread(self.apply, harmless)
                assert "serverside-applied" in said, (seed, said)
                # This is refused, or passes because nobody judges it at the moment.
                said = await asyncio.to_thread(self.apply, harmful, "--dry-run=server")
                assert "serverside-applied" in said or "refuses it (spec.changes)" in said, (seed, said)
        finally:
            working.cancel()
            await asyncio.wait({working})
        working.result()
        return number

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The webhook's answer to a request from anywhere."""
        context = ssl.create_default_context(cafile=str(self.pod.volume.directory / "ca.crt"))
        connection = http.client.HTTPSConnection("127.0.0.1", self.pod.port, context=context, timeout=60)
        try:
            connection.request("POST", path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    async def remove(self) -> None:
        """Leave nothing that judges or needs this."""
        await self.admin.clean_up()
