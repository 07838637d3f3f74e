"""Schemas that cannot be those of composites, or mean something else for them: what the author reads."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.core.composition import problem
from crdkeeper.core.composition.acceptance import accept
from tests.cluster.composition.agreement import Observer
from tests.cluster.composition.authoring import CRDS, DEFINITIONS, Author, Definition, spec_with
from tests.cluster.composition.refusals import said
from tests.cluster.harness import each_of
from tests.controlplane.cluster import Cluster
from tests.controlplane.kubectl import KubectlError
from tests.unit.core.composition.documents import SPEC, schema, version

Json = Any
BASE = "spec.versions[0].schema.openAPIV3Schema"
ATOMIC = {"x-kubernetes-map-type": "atomic"}
COUNTED = "[has(self.engine), has(self.replicas)].filter(each, each).size()"
PHASE = {"type": "object", "required": ["phase"], "properties": {"phase": {"type": "string"}}}


@dataclass(frozen=True)
class Trap:
    """A schema, and what is said of it."""

    schema: Json
    rule: Rule
    path: str
    message: str

    def definition(self, group: str, number: int) -> Definition:
        return Definition(group, f"trap{number}")


REFUSED = (
    Trap(
        schema(oneOf=[{"required": ["spec"]}]),
        problem.ROOT,
        ".oneOf",
        "oneOf is not allowed here; instead, write in x-kubernetes-validations: rule: "
        '"[has(self.spec)].exists_one(each, each)"',
    ),
    Trap(schema(maxProperties=3), problem.ROOT, ".maxProperties", "maxProperties is not allowed here"),
    Trap(schema(**ATOMIC), problem.ROOT, ".x-kubernetes-map-type", "x-kubernetes-map-type is not allowed"),
    Trap(
        schema(status={"type": "array", "items": {"type": "string"}}),
        problem.NOT_AN_OBJECT,
        ".properties[status].type",
        "the type is array, not object",
    ),
    Trap(
        schema({"type": "object", "additionalProperties": {"type": "string"}}),
        problem.MAP,
        ".properties[spec].additionalProperties",
        "it is a map",
    ),
    Trap(
        schema({**SPEC, "maxProperties": 1}),
        problem.COUNTED,
        ".properties[spec].maxProperties",
        "maxProperties also counts crdkeeper; instead, write in x-kubernetes-validations: rule: "
        f'"{COUNTED} <= 1"',
    ),
    Trap(
        schema({**SPEC, "enum": [{"engine": "a"}]}),
        problem.COUNTED,
        ".properties[spec].enum",
        "no value has crdkeeper",
    ),
    Trap(
        schema({**SPEC, **ATOMIC}),
        problem.ATOMIC,
        ".properties[spec].x-kubernetes-map-type",
        "spec is atomic",
    ),
    Trap(
        schema(required=["status"]),
        problem.STATUS_REQUIRED,
        ".required",
        "status is required, but a new object has none: no object could be created",
    ),
)

WARNED = (
    Trap(
        schema({**SPEC, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}),
        problem.WHOLE,
        ".properties[spec].x-kubernetes-validations[0].rule",
        "the rule is also about spec.crdkeeper",
    ),
    Trap(
        schema(status={"type": "object", "properties": {"conditions": {"type": "string"}}}),
        problem.RESERVED,
        ".properties[status].properties[conditions]",
        "conditions is reserved",
    ),
    Trap(
        schema(status=PHASE),
        problem.STATUS_REQUIRED,
        ".properties[status]",
        "at first, status is refused: status.phase: Required value",
    ),
)


async def apply_all(author: Author, group: str, traps: tuple[Trap, ...]) -> list[tuple[Definition, Trap]]:
    """A definition for each, at once."""
    found = [(each.definition(group, number), each) for number, each in enumerate(traps)]

    async def apply(of: tuple[Definition, Trap]) -> None:
        await author.apply(of[0], versions=[version(of=of[1].schema)])

    await each_of(found, apply)
    return found


async def test_what_cannot_be_a_composite(author: Author, observer: Observer, group: str) -> None:
    for each, trap in await apply_all(author, group, REFUSED):
        text = f"{BASE}{trap.path}: {trap.message}"
        end = f" [{trap.rule.id}]. {trap.rule.remedy}"
        await observer.sees(each, "Accepted", "False", "Invalid", text, end, judged="Failed")
        assert await author.get(each.crd) is None
        await author.apply(each)
    for number in range(len(REFUSED)):
        await author.ready(Definition(group, f"trap{number}"))


async def test_what_means_something_else_for_a_composite(
    author: Author, observer: Observer, group: str
) -> None:
    for each, trap in await apply_all(author, group, WARNED):
        text = f"{BASE}{trap.path}: {trap.message} [{trap.rule.id}]. {trap.rule.why} {trap.rule.remedy}"
        await observer.sees(each, "Accepted", "True", "AcceptedWithWarnings", text, judged="Current")


async def test_what_the_api_server_would_refuse_is_said_in_its_words(
    author: Author, observer: Observer, group: str
) -> None:
    thing = Definition(group, "thing")
    spec = spec_with()
    spec["properties"] |= {"size": {"type": "text"}, "tags": {"type": "array"}}
    versions = [version(of=schema(spec))]
    made = accept(thing.document(versions=versions)).crd
    assert made is not None
    refused = await said(author.client, CRDS, made)
    assert len(refused) >= 2
    await author.apply(thing, versions=versions)
    await observer.sees(
        thing, "Accepted", "False", "Invalid", ".properties[size].type: ", *refused, judged="Failed"
    )
    assert await author.get(thing.crd) is None


async def test_a_field_that_does_not_exist(
    author: Author, observer: Observer, plane: Cluster, group: str
) -> None:
    thing = Definition(group, "thing")
    misspelt = thing.document(breakingChange="Allow")
    with pytest.raises(KubectlError, match=r'unknown field "spec\.breakingChange"'):
        plane.kubectl("create", "--filename=-", input=json.dumps(misspelt))
    # Whoever does not ask the API server to say so, loses it; the definition is as without it.
    created = await author.client.request("POST", DEFINITIONS, misspelt)
    assert "breakingChange" not in created["spec"]
    await observer.sees(thing, "Accepted", "True", "Accepted", judged="Current")


async def test_crdkeepers_own_group(author: Author, observer: Observer, group: str) -> None:
    thing = Definition(f"{group.partition('.')[0]}.crdkeeper.dev", "thing")
    await author.apply(thing)
    try:
        text = "crdkeeper's composer does not write crdkeeper's own CRDs"
        await observer.sees(thing, "Accepted", "False", "Refused", text, judged="Failed")
        assert await author.get(thing.crd) is None
    finally:
        await author.delete(thing.path)
    await author.gone(thing.path)
