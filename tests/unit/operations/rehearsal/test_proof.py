"""What the API server says of an object, beside what the engine predicts."""

from pathlib import Path
from typing import Any

import pytest

from crdkeeper.core.rehearsal.effect import Effect, EffectKind
from crdkeeper.core.rehearsal.judgement import Judge
from crdkeeper.operations.rehearsal.proof import Proof, ShadowUse
from tests.unit.cluster.transport.localserver import Handler, client_of, failure, json
from tests.unit.core.rehearsal.crds import TEXT, crd, definition, told, version, widget

Json = Any
NEW = version(a=TEXT | {"maxLength": 2})
GOOD, BAD = widget({"a": "x"}), widget({"a": "long"})
TOO_LONG = {"reason": "FieldValueTooLong", "field": "spec.a", "message": "Too long: may not be more than 2"}
REFUSED = (EffectKind.REFUSED, "spec.a", "v1")
UNKNOWN = (EffectKind.INDETERMINATE, "", "v1")
NONE = json({"items": [], "metadata": {}})
MADE = json({})
READY = json({"status": {"conditions": [{"type": "Established", "status": "True"}]}})


def invalid(*causes: Json, message: str = "is invalid") -> Handler:
    return failure(422, "Invalid", message, details={"causes": list(causes)})


async def effects(directory: Path, obj: Json, answer: Handler) -> list[Effect]:
    compiled = definition(NEW)
    judge = Judge(compiled, compiled)
    async with (
        client_of(directory, NONE, MADE, READY, answer, MADE) as (_, client),
        Proof(client, crd(NEW), judge, "v1", ShadowUse.ALWAYS, lambda _: None) as proof,
    ):
        found = await proof.of(obj, judge.predict(obj))
    assert found is not None
    return found


@pytest.mark.parametrize("obj", [GOOD, BAD])
@pytest.mark.parametrize(
    "answer",
    [
        failure(403, "Forbidden", "denied"),
        # A policy that names no reason.
        invalid({"message": "no"}, message="is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"),
        # A webhook that gives no code, and one that answers as the API server does of a schema.
        failure(400, "", 'admission webhook "w" denied the request: no'),
        invalid(TOO_LONG, message='admission webhook "w" denied the request: is invalid'),
    ],
)
async def test_what_others_refuse_says_nothing_of_the_schema(
    tmp_path: Path, obj: Json, answer: Handler
) -> None:
    found = await effects(tmp_path, obj, answer)
    assert told(found) == {UNKNOWN} | ({REFUSED} if obj is BAD else set())
    assert not any(each.by_server for each in found)


async def test_a_refusal_that_both_expect_is_the_servers(tmp_path: Path) -> None:
    found = await effects(tmp_path, BAD, invalid(TOO_LONG))
    assert [(each.kind, each.field, each.by_server) for each in found] == [
        (EffectKind.REFUSED, "spec.a", True)
    ]


async def test_what_the_server_accepts_is_not_refused(tmp_path: Path) -> None:
    assert told(await effects(tmp_path, BAD, json(BAD, 201))) == {UNKNOWN}
