"""A CRD on the real API server whose spec has one property for each schema under test."""

import re
from typing import Any

import orjson

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.structural import conversion_error
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.cluster.transport.client import ApiError, Client
from tests.cluster.harness.waiting import eventually

Json = Any
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KIND = "Sample"
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_BAD_PROPERTY = re.compile(r"properties\[(?:spec|status)\]\.properties\[(p\d+)\]")


def _converts(schema: Json) -> bool:
    """Whether a schema can be made structural; otherwise the server does not say which of many cannot."""
    report = Report()
    decoded = SCHEMA.decode(schema, root("schema"), report)
    return not report.violations and conversion_error(decoded) is None


class Resource:
    """A cluster-scoped resource in its own group; its CRD is open at first, so that it accepts any object.

    With `status` it has the subresource, and the same properties in status as in spec.
    """

    def __init__(self, client: Client, group: str, *, status: bool = False) -> None:
        self._client = client
        self._group = group
        self._status = status
        self._name = f"samples.{group}"
        self.path = f"/apis/{group}/v1/samples"
        self.properties: dict[str, Json] = {}
        self.schema: ObjectSchema

    def object(self, name: str, spec: Json, **metadata: Any) -> Json:
        """An object of this resource."""
        found = {
            "apiVersion": f"{self._group}/v1",
            "kind": KIND,
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        return {**found, "status": spec} if self._status else found

    def _definition(self, schema: Json) -> Json:
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        if self._status:
            version["subresources"] = {"status": {}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self._name},
            "spec": {
                "group": self._group,
                "names": {"plural": "samples", "kind": KIND},
                "scope": "Cluster",
                "versions": [version],
            },
        }

    def _strict(self, marker: str) -> Json:
        # An object with another marker is rejected as soon as this schema is in effect.
        properties = {**self.properties, "marker": {"type": "string", "enum": [marker]}}
        parts: Json = {"spec": {"type": "object", "properties": properties}}
        if self._status:
            parts["status"] = {"type": "object", "default": {}, "properties": self.properties}
        return {"type": "object", "properties": parts}

    async def select(self, schemas: list[Json]) -> None:
        """Selects the schemas that the API server accepts."""
        self.properties = {f"p{i}": each for i, each in enumerate(schemas) if _converts(each)}
        while self.properties:
            content = orjson.dumps(self._definition(self._strict("x")))
            answer = await self._client.send("POST", f"{CRDS}?dryRun=All", content=content)
            if answer.code == 201:
                return
            said = answer.content.decode()
            bad = set(_BAD_PROPERTY.findall(said)) & self.properties.keys()
            assert bad, said
            for name in bad:
                del self.properties[name]

    async def open(self) -> None:
        """Creates the CRD with a schema that accepts everything."""
        await self._client.request("POST", CRDS, self._definition(_OPEN))

        async def served() -> bool:
            return (await self._client.send("GET", f"{self.path}?limit=1")).code == 200

        await eventually(served, otherwise=lambda: f"{self._name} is not served")

    async def close_in(self, marker: str) -> None:
        """Puts the schema under test into effect."""
        await self._replace(self._strict(marker))
        probe = orjson.dumps(self.object("probe", {"marker": "none"}))

        async def in_force() -> bool:
            answer = await self._client.send("POST", f"{self.path}?dryRun=All", content=probe)
            return answer.code == 422

        await eventually(in_force, otherwise=lambda: f"{self._name} keeps its open schema")
        report = Report()
        decoded = SCHEMA.decode(self._strict(marker), root("schema"), report)
        assert decoded is not ABSENT and not report.violations, report
        self.schema = ObjectSchema.of(decoded, status=self._status)

    async def _replace(self, schema: Json) -> None:
        await eventually(lambda: self._replaced(schema), otherwise=lambda: f"{self._name} is always changed")

    async def _replaced(self, schema: Json) -> bool:
        definition = await self._client.request("GET", f"{CRDS}/{self._name}")
        # Not with a merge patch, which would lose the nulls in enums.
        definition["spec"] = self._definition(schema)["spec"]
        try:
            await self._client.request("PUT", f"{CRDS}/{self._name}", definition)
        except ApiError as error:
            if error.code == 409:
                return False  # the API server sets conditions at the same time
            raise
        return True

    async def delete(self) -> None:
        """Deletes the CRD and its objects."""
        # With the schema under test, the server may be unable to read them, and then never deletes them.
        await self._replace(_OPEN)
        await self._client.send("DELETE", f"{CRDS}/{self._name}")
