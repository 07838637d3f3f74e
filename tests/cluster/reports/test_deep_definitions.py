"""A CRD with a value that is nested deeper than most can read it: the operator keeps working."""

import orjson

from crdkeeper.cluster.transport.client import APPLY_PATCH
from tests.cluster.harness import Admin, CustomKind, Operator, eventually
from tests.cluster.harness.admin import CRDS, OURS

LEVELS = 3_000


async def test_a_deeply_nested_example(admin: Admin, operator: Operator, group: str) -> None:
    deep, other = CustomKind(group), CustomKind(f"other.{group}")
    value = deep.to_object()
    value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["example"] = "MARK"
    content = orjson.dumps(value).replace(b'"MARK"', b"[" * LEVELS + b"]" * LEVELS)
    path = f"{CRDS}/{deep.name}"
    answer = await admin.client.send(
        "PATCH", f"{path}?fieldManager=admin", content=content, content_type=APPLY_PATCH
    )
    assert answer.code == 201, answer.content[:500]
    admin.cleans_up(path)
    await admin.apply_definition(other)

    async def reported() -> bool:
        names = (deep.name, other.name)
        return all([await admin.find(f"{OURS}/definitionreports/{each}") is not None for each in names])

    await eventually(reported)
    assert operator.leading()
