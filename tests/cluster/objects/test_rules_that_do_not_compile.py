"""Rules of an existing CRD that do not compile: we and the API server reject the same objects alike.

The CRDs are put into etcd, bypassing all rules. CRDKEEPER_EXPRESSIONS sets the number of mutated rules,
CRDKEEPER_SEED selects others.
"""

import os
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection
from tests.cluster.cel.compiling.costly import COSTS
from tests.cluster.cel.compiling.expressions import Nested, mutated
from tests.cluster.cel.compiling.schemas import SELF
from tests.cluster.cel.compiling.special import EXPRESSIONS, NAMES
from tests.cluster.harness.waiting import eventually
from tests.cluster.objects.agreement import Cause, ask
from tests.controlplane.cluster import Cluster

COUNT = int(os.environ.get("CRDKEEPER_EXPRESSIONS", "900")) // 3
SEED = int(os.environ.get("CRDKEEPER_SEED", "0"))
PER_CRD = 200
OBJECT: dict[str, Any] = {"s": "a", "i": 1, "n": 1.5, "b": True, "o": {}, "ls": ["a"], "ms": {"a": "b"}}
SHOWN = 10


def _texts() -> list[str]:
    rng = random.Random(f"stored {SEED}")
    nested = Nested(rng)
    good = [*COSTS, *NAMES, *(nested.rule() for _ in range(100))]
    return [*EXPRESSIONS, *(mutated(rng, rng.choice(good)) for _ in range(COUNT))]


def _definition(group: str, texts: Sequence[str]) -> dict[str, Any]:
    rules = [{"rule": text, "message": text.replace("\n", " ")} for text in texts]
    spec = {**SELF, "required": [], "x-kubernetes-validations": rules}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"rules.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "rules", "singular": "rule", "kind": "Rule", "listKind": "RuleList"},
            "scope": "Cluster",
            "versions": [version],
        },
    }


_FAILED = "compilation failed: ERROR:"
_SELF_TYPE = re.compile(r"\bselfType[0-9]+")
"""The name of the type of `self`, which differs each time."""


def _worded(field: str, message: str) -> Cause:
    """A message without the parser's own text, which the tests of compiling compare."""
    before, _, error = message.partition(_FAILED)
    if "Syntax error:" in error:
        message = f"{before}{_FAILED}"
    return field, _SELF_TYPE.sub("selfType", message)


async def _compared(
    client: Client, plane: Cluster, group: str, texts: Sequence[str]
) -> tuple[list[str], int]:
    """What only one side reports, and how many rules we leave to the server."""
    crd = _definition(group, texts)
    schema = SCHEMA.decode(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], root("s"), Report())
    key = f"/registry/apiextensions.k8s.io/customresourcedefinitions/rules.{group}"
    path = f"/apis/{group}/v1/rules"
    plane.etcd.put(key, crd)
    try:

        async def served() -> bool:
            return (await client.send("GET", f"{path}?limit=1")).code == 200

        await eventually(served, otherwise=lambda: f"{group} is not served")
        new = {"apiVersion": f"{group}/v1", "kind": "Rule", "metadata": {"name": "x"}, "spec": OBJECT}
        admitted = ObjectSchema.of(schema).admit(new)
        verdict = await ask(client, "POST", path, new)
        ours = {_worded(str(each.path), each.message) for each in admitted.violations}
        server = {_worded(*each) for each in verdict.causes}
        left = [each for each in admitted.unchecked if "in words of its own" not in each.reason]
        wrong = [f"only we: {each}" for each in sorted(ours - server)]
        if len(server - ours) > len(left):
            wrong += [f"only the server: {each}" for each in sorted(server - ours)]
        return wrong, len(left)
    finally:
        plane.etcd.delete(key)


@pytest.mark.timeout(300 + COUNT)
async def test_same_words(plane: Cluster, group: str) -> None:
    texts = _texts()
    wrong: list[str] = []
    left = 0
    async with Client(Connection(plane.kubeconfig)) as client:
        for start in range(0, len(texts), PER_CRD):
            said, unchecked = await _compared(
                client, plane, f"r{start}-{group}", texts[start : start + PER_CRD]
            )
            left += unchecked
            wrong += said
    print(f"{len(texts)} rules: {left} left to the server, {len(wrong)} disagree")
    assert not wrong, f"{len(wrong)} of {len(texts)} disagree\n" + "\n".join(wrong[:SHOWN])
    assert left <= len(texts) / 50
