"""CRDs to publish: random schemas as properties, variants of small CRDs, and the corpus' if there is one."""

import copy
from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.cluster.transport.client import Client
from tests.cluster.definitions.lint.agreement import ask
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.variants import BASES, Crd, corpus, definition, variants, version
from tests.cluster.objects.resource import Resource
from tests.cluster.objects.schemas import schemas

AT_ONCE = 25

_TEXT = {"type": "string"}
_NULL = {"type": "string", "nullable": True}
_EITHER = [{"type": "integer"}, {"type": "string"}]
_INT_OR_STRING: Any = {"x-kubernetes-int-or-string": True}
_OPEN: Any = {"x-kubernetes-preserve-unknown-fields": True}
_A: Any = {"type": "object", "properties": {"a": _TEXT, "b": _NULL}}
_EMBEDDED: Any = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": _A}}

QUIRKS: tuple[Any, ...] = (
    {**_A, "required": ["a", "b"]},
    {**_A, "required": ["b"], "default": {"b": None}},
    {**_A, "nullable": True, "required": ["a"]},
    {**_A, **_OPEN, "required": ["a", "b"]},
    {"type": "object", "additionalProperties": _NULL, "required": ["a"]},
    {"type": "object", "additionalProperties": {**_A, "nullable": True}},
    {"type": "object", "additionalProperties": {}, **_OPEN},
    {"type": "array", "items": {**_A, "nullable": True}},
    {"type": "array", "items": _A, **_OPEN},
    {"type": "array", "items": _A, "nullable": True},
    {**_A, "allOf": [{"properties": {"a": {}}}]},
    {**_A, "not": {"properties": {"a": {"maxLength": 1}}}, "oneOf": [{}, {"required": ["a"]}]},
    _INT_OR_STRING,
    {**_INT_OR_STRING, "anyOf": _EITHER},
    {**_INT_OR_STRING, "anyOf": [{"minimum": 1}], "allOf": [{"maximum": 9.5}]},
    {**_INT_OR_STRING, "allOf": [{"anyOf": _EITHER}, {"maximum": 9}]},
    _EMBEDDED,
    {**_EMBEDDED, **_OPEN},
    {**_EMBEDDED, "required": ["kind"]},
    {"type": "string", "example": "", "enum": [], "externalDocs": {}, "definitions": {}, "title": "T"},
    {"type": "string", "example": 0, "enum": ["a", ""], "externalDocs": {"url": "https://example.com"}},
    {**_TEXT, "x-kubernetes-validations": [{"rule": "true", "message": "", "optionalOldSelf": False}]},
)
"""Schemas that one version of OpenAPI shows differently."""


def in_group(crd: Crd, number: int, run: str) -> Crd:
    """The same CRD in its own group, with the same suffix: some groups need an approval."""
    crd = copy.deepcopy(crd)
    spec = crd["spec"]
    end = "k8s.io" if spec["group"].endswith(".k8s.io") else "example.com"
    spec["group"] = f"publishing-{run}-{number}.{end}"
    crd["metadata"]["name"] = f"{spec['names']['plural']}.{spec['group']}"
    return crd


async def with_random_schemas(client: Client, count: int, seed: int) -> list[Crd]:
    """CRDs with quirks and random properties in their specs; without those that the API server rejects."""
    drawn_schemas: list[Any] = [*QUIRKS, *drawn(schemas(), count, seed)]
    found: list[Crd] = []
    for at in range(0, len(drawn_schemas), AT_ONCE):
        resource = Resource(client, "publishing.example.com")
        await resource.select(drawn_schemas[at : at + AT_ONCE])
        spec = {"type": "object", "properties": resource.properties}
        found.append(definition(version("v1", {"type": "object", "properties": {"spec": spec}})))
    return found


async def accepted_variants(client: Client, count: int, seed: int) -> list[Crd]:
    """Small CRDs with a few changes each, if the API server accepts them."""
    good = [each for each in drawn(variants(BASES), 3 * count, seed) if not check_creation(each).violations]
    return [each for each in good[:count] if (await ask(client, each)).code == 201]


def all_of_the_corpus() -> tuple[Crd, ...]:
    """The corpus' CRDs of every size."""
    return corpus(biggest=None)
