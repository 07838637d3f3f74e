"""CronTabs, their VersionConversion, an API server and a webhook for it, in virtual time."""

import asyncio
import base64
import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from crdkeeper.api.meta import READY
from crdkeeper.cluster.probes.conversionwebhook import WebhookReply
from crdkeeper.cluster.resources.versionconversions import BUNDLE_KEY, BUNDLE_LABEL, FIELD_MANAGER
from crdkeeper.cluster.transport.client import Answer, ApiError, Client
from crdkeeper.controllers.metrics import OperatorMetrics
from crdkeeper.controllers.state import ClusterState
from crdkeeper.controllers.versionconversion.controller import VersionConversions
from crdkeeper.core.conversion.bundle import digest, unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.diagnosis.facts import seen_definition
from tests import virtualtime
from tests.cluster.conversion.rules import RULES, crontab_definition, rules_of
from tests.unit.controllers.fakeapi import DEFINITIONS, OURS, FakeApi

GROUP = "example.com"
NAME = f"crontabs.{GROUP}"
HOME = "crdkeeper-system"
ADDRESS = WebhookAddress(HOME, "crdkeeper-webhook")
CERTIFICATE = "-----BEGIN CERTIFICATE-----"
CRD, CONVERSION = f"{DEFINITIONS}/{NAME}", f"{OURS}/versionconversions/{NAME}"
BUNDLE = f"/api/v1/namespaces/{HOME}/configmaps/{NAME}"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
V1 = {
    "host": "localhost",
    "port": 1234,
    "schedule": "* * * * */5",
    "replicas": 3,
    "containers": [{"name": "web", "image": "nginx", "memory": "1Gi"}],
}
CONVERTING = ("True", "Converting")
SLASHED = {
    **RULES,
    "v1alpha1": [
        RULES["v1alpha1"][0],
        {"spoke": "spec.hostPort", "join": {**RULES["v1alpha1"][1]["join"], "template": "{host}/{port}"}},
        *RULES["v1alpha1"][2:],
    ],
}


def definition(*, storage: str = "v1", **spec: Any) -> dict[str, Any]:
    """The CRD without a conversion."""
    made = copy.deepcopy(crontab_definition(GROUP, storage=storage, client_config={}))
    made["spec"] |= {"conversion": {"strategy": "None"}, **spec}
    made["metadata"] |= {"uid": "u1", "resourceVersion": "100", "generation": 1}
    made["status"] = {
        "storedVersions": [storage],
        "acceptedNames": made["spec"]["names"],
        "conditions": [
            {"type": "Established", "status": "True"},
            {"type": "NamesAccepted", "status": "True"},
        ],
    }
    return made


def conversion(rules: Mapping[str, Any] = RULES, *, generation: int = 1, **spec: Any) -> dict[str, Any]:
    """The VersionConversion as applied by a person."""
    made = copy.deepcopy(rules_of(GROUP, dict(rules)))
    made["metadata"] |= {"uid": "u2", "resourceVersion": "1", "generation": generation}
    made["spec"] |= spec
    return made


@dataclass
class Plane(FakeApi):
    """The API server: stores what is applied, converts CronTabs with our webhook, checks permissions."""

    permitted: bool = True
    answers: Callable[[str, str], None] = lambda method, path: None
    """Called with each request; may raise the API server's error."""
    crontabs: list[dict[str, Any]] = field(default_factory=list)
    """As stored."""
    events: list[str] = field(default_factory=list)
    """The reasons."""
    watched: Callable[[str], None] = lambda path: None
    """Called with the path of each object that was written."""

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        most: int | None = None,
        lean: bool = False,
    ) -> dict[str, Any]:
        plain = path.partition("?")[0]
        self.answers(method, plain)
        if plain.endswith("selfsubjectaccessreviews"):
            return {"status": {"allowed": self.permitted}}
        if plain.startswith(f"/apis/{GROUP}/"):
            return self._crontabs(plain)
        if plain == EVENTS and body is not None:
            self.events.append(body["reason"])
            return {}
        if method == "PATCH":
            self.requests.append((method, plain))
            written = self._applied(plain, body or {}, content_type)
            self.watched(plain.removesuffix("/status"))
            return written
        if method == "DELETE":
            self.requests.append((method, plain))
            return self.objects.pop(plain)
        return await super().request(method, path, body, content_type=content_type, accept=accept)

    async def send(self, method: str, path: str, **_: Any) -> Answer:
        try:
            return Answer(200, orjson.dumps(await self.request(method, path)))
        except ApiError as error:
            return Answer(error.code, orjson.dumps(dict(error.body)))

    def _applied(self, path: str, body: Mapping[str, Any], content_type: str) -> dict[str, Any]:
        path = path.removesuffix("/status")
        if path == BUNDLE and content_type.startswith("application/apply"):
            self.objects.setdefault(path, {"metadata": {"uid": "u3"}})
        if path not in self.objects:
            raise ApiError(404, {"message": "not found"})
        found = self.objects[path]
        if path == CRD:
            self._apply_definition(found, body)
        elif path == BUNDLE:
            found["metadata"] |= body.get("metadata") or {}
            found |= {key: each for key, each in body.items() if key != "metadata"}
        else:
            if "status" in body:
                found["status"] = body["status"]
            else:
                found["metadata"].pop("finalizers", None)
        return copy.deepcopy(found)

    def _apply_definition(self, found: dict[str, Any], body: Mapping[str, Any]) -> None:
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            raise ApiError(409, {"message": "the object has been modified"})
        spec = body.get("spec") or {}
        found["spec"]["conversion"] = spec.get("conversion") or {"strategy": "None"}
        fields: dict[str, Any] = {"f:spec": {"f:conversion": {}}} if spec else {}
        found["metadata"]["managedFields"] = [
            {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
        ]
        self.touch(found)

    def touch(self, found: dict[str, Any]) -> None:
        """An object was changed."""
        found["metadata"]["generation"] += 1
        found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)

    def converting(self) -> Conversion | None:
        """The webhook's rules, if the CRD uses it."""
        crd = self.objects.get(CRD)
        bundle = self.objects.get(BUNDLE)
        if crd is None or bundle is None or crd["spec"]["conversion"]["strategy"] != "Webhook":
            return None
        made = compile_conversion(*unpacked(base64.b64decode(bundle["binaryData"][BUNDLE_KEY])))
        assert isinstance(made, Conversion)
        return made

    def _crontabs(self, path: str) -> dict[str, Any]:
        version = path.split("/")[3]
        made = self.converting()
        items = [
            dict(made.convert(each, version)) if made else {**each, "apiVersion": f"{GROUP}/{version}"}
            for each in copy.deepcopy(self.crontabs)
        ]
        if path.endswith("/crontabs"):
            return {"metadata": {"resourceVersion": "9"}, "items": items}
        for each in items:
            if path.endswith(f"/{each['metadata']['name']}"):
                return each
        raise ApiError(404, {"message": "not found"})


class Scene:
    """A VersionConversion for a CRD with one object, and the running controller."""

    def __init__(self) -> None:
        self.api = Plane({CRD: definition(), CONVERSION: conversion()})
        self.api.crontabs = [
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "CronTab",
                "metadata": {"name": "mine", "namespace": "default", "uid": "u4", "resourceVersion": "5"},
                "spec": copy.deepcopy(V1),
            }
        ]
        self.state, self.metrics = ClusterState(), OperatorMetrics()
        self.certificate: tuple[str | None, str] = (CERTIFICATE, "")
        self.silence = ""
        """Why the webhook does not answer."""
        self.slow = 0.0
        """Seconds that the webhook takes to answer."""
        self.behind = False
        """Whether the webhook has not loaded the newest rules yet."""
        self.controller = VersionConversions(
            cast(Client, self.api),
            self.state,
            self.metrics,
            identity="me",
            namespace=HOME,
            address=ADDRESS,
            certificate=lambda: self.certificate,
        )

    async def ask(
        self, address: WebhookAddress, name: str, bundle: str, version: str, objects: Sequence[Any]
    ) -> WebhookReply:
        """Replaces `ask_webhook`."""
        await asyncio.sleep(self.slow)
        assert (address, name, bundle) == (ADDRESS, NAME, CERTIFICATE)
        if self.silence:
            return WebhookReply("", (), self.silence)
        content = base64.b64decode(self.api.objects[BUNDLE]["binaryData"][BUNDLE_KEY])
        made = compile_conversion(*unpacked(content))
        assert isinstance(made, Conversion)
        said = [dict(made.convert(each, version.rpartition("/")[2])) for each in objects]
        return WebhookReply("old" if self.behind else digest(content), said)

    def see(self) -> None:
        """The current state in Kopf's watches."""
        self.see_definition()
        self.see_conversion()

    def see_definition(self) -> None:
        """The current state in the watch of CRDs."""
        crd = self.api.objects.get(CRD)
        self.state.saw_definition(NAME, None if crd is None else seen_definition(copy.deepcopy(crd)))

    def see_conversion(self) -> None:
        """The current state in the watch of VersionConversions."""
        found = self.api.objects.get(CONVERSION)
        self.state.saw_conversion(NAME, None if found is None else found["metadata"]["generation"])

    def apply(self, rules: Mapping[str, Any] = RULES, **spec: Any) -> None:
        """The VersionConversion is changed."""
        before = self.api.objects.get(CONVERSION)
        generation = 1 if before is None else before["metadata"]["generation"] + 1
        changed = conversion(rules, generation=generation, **spec)
        self.api.objects[CONVERSION] = {
            **(before or {}),
            "spec": changed["spec"],
            "metadata": changed["metadata"],
        }
        self.see_conversion()

    def delete(self, *paths: str) -> None:
        """Objects are deleted."""
        for each in paths:
            del self.api.objects[each]
            (self.see_definition if each == CRD else self.see_conversion)()

    def begin_deletion(self) -> None:
        """The CRD is deleted, and waits for its finalizers."""
        crd = self.api.objects[CRD]
        crd["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.api.touch(crd)
        self.see_definition()

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.objects[CONVERSION].get("status") or {}
        return found

    def condition(self, type_: str = READY) -> tuple[str, str]:
        """A condition's status and reason."""
        for each in self.status.get("conditions") or ():
            if each["type"] == type_:
                return each["status"], each["reason"]
        return "", ""

    @property
    def strategy(self) -> str:
        """Who converts the CRD."""
        found: str = self.api.objects[CRD]["spec"]["conversion"]["strategy"]
        return found

    def counted(self) -> dict[tuple[str, str], float]:
        """The metric of VersionConversions, without zeros."""
        (family,) = self.metrics.conversions.collect()
        return {
            (each.labels["status"], each.labels["reason"]): each.value
            for each in family.samples
            if each.value
        }

    def play(self, story: Callable[["Scene"], Awaitable[None]]) -> None:
        """Actions of people, from the first event on."""

        async def main() -> None:
            working = asyncio.create_task(self.controller.queue.run())
            loop = asyncio.get_running_loop()
            sees = {CRD: self.see_definition, CONVERSION: self.see_conversion, BUNDLE: lambda: None}

            def watched(path: str) -> None:
                loop.call_later(0.05, sees[path])

            self.api.watched = watched
            self.see()
            await asyncio.sleep(0.1)
            await story(self)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

        virtualtime.run(main())


def has_label(config_map: Mapping[str, Any]) -> bool:
    """Whether it is labelled as a bundle."""
    return bool(config_map["metadata"]["labels"][BUNDLE_LABEL])
