"""SubresourcesReady: what the schema needs for status and scale, and the meaning of an object's /scale."""

from typing import Any

import pytest

from crdkeeper.core.diagnosis.conditions import subresources
from crdkeeper.core.diagnosis.conditions.subresources import SubresourceFacts, judge
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.diagnosis.subresourcefacts import (
    DeclaredSubresources,
    ScaleProbe,
    ScaleRead,
    declared_subresources,
)
from crdkeeper.core.diagnosis.verdict import Verdict
from tests.unit.builders import crd as crd_object
from tests.unit.builders import definition

INTEGER, STRING = {"type": "integer"}, {"type": "string"}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


GOOD_SPEC = object_of(replicas=INTEGER)
GOOD_STATUS = object_of(replicas=INTEGER, selector=STRING)
GOOD = object_of(spec=GOOD_SPEC, status=GOOD_STATUS)
READ = ScaleProbe((ScaleRead("v1", "ns/w1"), ScaleRead("v2", "ns/w1")))


def declared(
    schema: dict[str, Any] | None = None,
    scale: dict[str, Any] | None = None,
    *,
    status: bool = True,
    served: tuple[str, ...] = ("v2",),
    deprecated: tuple[str, ...] = (),
    **spec: Any,
) -> DeclaredSubresources:
    crd = crd_object(served=served)
    crd["spec"] |= spec
    for version in crd["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": GOOD if schema is None else schema}
        version["subresources"] = {
            **({"status": {}} if status else {}),
            **({"scale": scale} if scale else {}),
        }
        version |= {"deprecated": True} if version["name"] in deprecated else {}
    return declared_subresources(crd)


def verdict(found: DeclaredSubresources, probe: ScaleProbe | None = READ) -> Verdict:
    return judge(SubresourceFacts(definition(), found, probe))


@pytest.mark.parametrize(
    ("schema", "path", "detail"),
    [
        (
            object_of(spec=object_of(), status=GOOD_STATUS),
            "specReplicasPath",
            "the schema has no .spec.replicas",
        ),
        (object_of(status=GOOD_STATUS), "specReplicasPath", "the schema has no .spec.replicas"),
        (
            object_of(spec=GOOD_SPEC, status=object_of(selector=STRING)),
            "statusReplicasPath",
            "the schema has no .status.replicas",
        ),
        (
            object_of(spec=GOOD_SPEC, status=object_of(replicas=INTEGER)),
            "labelSelectorPath",
            "the schema has no .status.selector",
        ),
        (
            object_of(spec=object_of(replicas=STRING), status=GOOD_STATUS),
            "specReplicasPath",
            ".spec.replicas must be of type integer, but is of type string",
        ),
        (
            object_of(spec=object_of(replicas={"type": "number"}), status=GOOD_STATUS),
            "specReplicasPath",
            ".spec.replicas must be of type integer, but is of type number",
        ),
        (
            object_of(spec=object_of(replicas={"x-kubernetes-int-or-string": True}), status=GOOD_STATUS),
            "specReplicasPath",
            ".spec.replicas must be of type integer, but is an integer or a string",
        ),
        (
            object_of(spec=GOOD_SPEC, status=object_of(replicas=INTEGER, selector=object_of())),
            "labelSelectorPath",
            ".status.selector must be of type string, but is of type object",
        ),
    ],
)
def test_scale_paths(schema: dict[str, Any], path: str, detail: str) -> None:
    found = declared(schema, SCALE)
    (problem,) = found.problems
    assert (problem.path, problem.detail) == (f"spec.versions[1].subresources.scale.{path}", detail)
    said = verdict(found)
    # Only the CRD's author can fix it, so Ready does not wait for it.
    assert (said.reason.status, said.reason.healthy) == ("False", True)
    assert said.message == f"{problem.path}: {detail}. {said.reason.remedy}"


@pytest.mark.parametrize(
    "schema",
    [
        GOOD,
        object_of(spec=OPEN, status=OPEN),
        OPEN,
        object_of(spec={**GOOD_SPEC, "x-kubernetes-preserve-unknown-fields": True}, status=GOOD_STATUS),
        object_of(spec={"type": "object", "additionalProperties": INTEGER}, status=GOOD_STATUS),
        object_of(
            spec=object_of(replicas={"x-kubernetes-preserve-unknown-fields": True}), status=GOOD_STATUS
        ),
    ],
    ids=["declared", "spec and status open", "all open", "open and declared", "a map", "a field of any type"],
)
def test_paths_that_lead_somewhere(schema: dict[str, Any]) -> None:
    assert declared(schema, SCALE).problems == ()


def test_what_is_open_does_not_open_what_is_declared() -> None:
    found = declared({**OPEN, "properties": {"spec": object_of()}}, SCALE)
    assert [each.detail for each in found.problems] == ["the schema has no .spec.replicas"]


def test_nothing_is_pruned_with_preserve_unknown_fields() -> None:
    assert declared(object_of(spec=object_of()), SCALE, preserveUnknownFields=True).problems == ()
    assert declared({}, SCALE).problems == ()


def test_versions_that_are_not_served_do_not_matter() -> None:
    crd = crd_object(served=("v2",))
    for version in crd["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": GOOD if version["served"] else object_of()}
        version["subresources"] = {"scale": SCALE}
    assert declared_subresources(crd) == DeclaredSubresources(
        scaled=("v2",), stateful=("v2",), scale_status=(".status.replicas", ".status.selector")
    )


def test_scale_at_deprecated_versions_is_judged_by_the_schema_alone() -> None:
    found = declared(scale=SCALE, served=("v1", "v2"), deprecated=("v1",))
    assert (found.scaled, found.read) == (("v1", "v2"), ("v2",))
    assert verdict(found, None).reason is subresources.PENDING
    alone = declared(scale=SCALE, deprecated=("v2",))
    assert (alone.scaled, alone.read) == (("v2",), ())
    assert verdict(alone, None).reason is subresources.DECLARED


@pytest.mark.parametrize(
    ("conditions", "detail"),
    [
        ({"type": "object"}, "must be of type array, but is of type object"),
        ({"type": "array", "items": STRING}, "its items have no field type"),
        ({"type": "array", "items": object_of(type=STRING)}, "its items have no field status"),
        (
            {"type": "array", "items": object_of(type=STRING, status={"type": "boolean"})},
            "its items' status must be of type string, but is of type boolean",
        ),
        ({"type": "array", "items": object_of(type=STRING, status=STRING)}, None),
        ({"type": "array", "items": OPEN}, None),
        ({"x-kubernetes-preserve-unknown-fields": True}, None),
    ],
)
def test_conditions(conditions: dict[str, Any], detail: str | None) -> None:
    found = declared(object_of(spec=object_of(), status=object_of(conditions=conditions)))
    where = "spec.versions[1].schema.openAPIV3Schema.properties[status].properties[conditions]"
    if detail is None:
        assert found.problems == ()
    else:
        first = found.problems[0]
        assert (first.path, first.detail) == (where, detail)
        said = verdict(found, None)
        assert said.reason is subresources.CONDITIONS_MALFORMED
        assert (said.reason.status, said.reason.healthy) == ("True", True)
        assert f"{where}: {detail}" in said.message


def test_malformed_conditions_do_not_hide_what_keeps_scale_from_working() -> None:
    conditions = object_of(conditions={"type": "array", "items": STRING})
    found = declared(object_of(spec=GOOD_SPEC, status=conditions), SCALE)
    said = verdict(found)
    assert said.reason is subresources.PATH_NOT_DECLARED
    assert "its items have no field type" in said.message

    both = {**GOOD_STATUS, "properties": {**GOOD_STATUS["properties"], **conditions["properties"]}}
    found = declared(object_of(spec=GOOD_SPEC, status=both), SCALE)
    failure = Failure(ProbeTrouble.FAILED, 500, "accessor error: 1 is of the type int64, expected string")
    said = verdict(found, ScaleProbe((ScaleRead("v1", "ns/w1", failure),)))
    assert said.reason is subresources.SCALE_FAILS


def test_an_array_of_schemas_is_no_condition_list_of_ours() -> None:
    conditions = {"type": "array", "items": [object_of(type=STRING)]}
    assert declared(object_of(status=object_of(conditions=conditions))).problems == ()


@pytest.mark.parametrize(
    ("found", "probe", "reason"),
    [
        (declared(status=False), None, "NoneDeclared"),
        (declared(), None, "Declared"),
        (declared(scale=SCALE), None, "Pending"),
        (declared(scale=SCALE), ScaleProbe(), "Declared"),
        (declared(scale=SCALE), READ, "ScaleRead"),
        (declared(scale={**SCALE, "labelSelectorPath": ""}), READ, "SelectorMissing"),
        (declared(object_of(spec=GOOD_SPEC)), None, "StatusNotDeclared"),
    ],
)
def test_what_is_in_order(found: DeclaredSubresources, probe: ScaleProbe | None, reason: str) -> None:
    said = verdict(found, probe)
    assert (said.reason.name, said.reason.healthy) == (reason, True)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (ProbeTrouble.FAILED, "ScaleFails"),
        (ProbeTrouble.FORBIDDEN, "NotPermitted"),
        (ProbeTrouble.BUSY, "APIServerUnavailable"),
        (ProbeTrouble.SILENT, "APIServerUnavailable"),
    ],
)
def test_a_scale_that_cannot_be_read(trouble: ProbeTrouble, reason: str) -> None:
    failure = Failure(trouble, 500, "accessor error: <nil> is of the type string, expected int64")
    said = verdict(declared(scale=SCALE), ScaleProbe((ScaleRead("v1", "ns/w1", failure),)))
    assert said.reason.name == reason
    assert "accessor error: <nil> is of the type string, expected int64" in said.message


@pytest.mark.parametrize(
    "message",
    [
        "etcdserver: leader changed",
        "conversion webhook for example.com/v2, Kind=Widget failed: Post "
        '"https://webhook.example.com/convert?timeout=30s": EOF',
        # A webhook in Go may use the same functions as the API server.
        "conversion webhook for example.com/v2, Kind=Widget failed: .spec.size accessor error: 1 is of the "
        "type int64, expected string",
    ],
)
def test_a_failure_of_the_server_or_a_webhook_is_not_the_objects(message: str) -> None:
    failure = Failure(ProbeTrouble.FAILED, 500, message)
    reads = (ScaleRead("v1", "ns/w1", failure), ScaleRead("v2", "ns/w1"))
    said = verdict(declared(scale=SCALE), ScaleProbe(reads))
    assert (said.reason, said.reason.status) == (subresources.NOT_ASKED, "Unknown")
    assert message in said.message

    own = Failure(ProbeTrouble.FAILED, 500, ".spec.replicas accessor error: x is of the type string")
    both = (*reads, ScaleRead("v3", "ns/w1", own))
    assert verdict(declared(scale=SCALE), ScaleProbe(both)).reason is subresources.SCALE_FAILS


def test_an_object_without_the_optional_replicas_is_in_order() -> None:
    text = 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'
    failure = Failure(ProbeTrouble.FAILED, 500, text)
    said = verdict(declared(scale=SCALE), ScaleProbe((ScaleRead("v1", "ns/w1", failure),)))
    assert said.reason is subresources.REPLICAS_NOT_SET
    assert (said.reason.status, said.reason.healthy) == ("True", True)
    assert "/scale of ns/w1 cannot be read at v1" in said.message

    # What else there is to say of the schema is not hidden by it.
    malformed = object_of(conditions={"type": "array", "items": object_of(type=STRING)})["properties"]
    both = {**GOOD_STATUS, "properties": {**GOOD_STATUS["properties"], **malformed}}
    found = declared(object_of(spec=GOOD_SPEC, status=both), {**SCALE, "labelSelectorPath": ""})
    said = verdict(found, ScaleProbe((ScaleRead("v1", "ns/w1", failure),)))
    assert said.reason is subresources.CONDITIONS_MALFORMED
    for each in ("/scale of ns/w1 cannot be read", "no labelSelectorPath", "its items have no field status"):
        assert each in said.message

    broken = Failure(ProbeTrouble.FAILED, 500, "accessor error: <nil> is of the type string, expected int64")
    reads = (ScaleRead("v1", "ns/w1", failure), ScaleRead("v2", "ns/w1", broken))
    assert verdict(declared(scale=SCALE), ScaleProbe(reads)).reason is subresources.SCALE_FAILS


def test_a_status_that_is_not_declared_is_not_called_declared() -> None:
    said = verdict(declared(object_of(spec=GOOD_SPEC)), None)
    assert said.reason is subresources.STATUS_NOT_DECLARED
    assert said.message == f"The schema has no status at v2. {said.reason.remedy}"


def test_a_list_that_cannot_be_read() -> None:
    failure = Failure(ProbeTrouble.FORBIDDEN, 403, "cannot list")
    assert verdict(declared(scale=SCALE), ScaleProbe(failure=failure)).reason is subresources.NOT_PERMITTED
    failure = Failure(ProbeTrouble.FAILED, 500, "conversion webhook failed")
    assert verdict(declared(scale=SCALE), ScaleProbe(failure=failure)).reason is subresources.NOT_ASKED


def test_many_problems_are_bounded() -> None:
    served = ("v1", "v2")
    found = declared(object_of(status=object_of(conditions=STRING)), SCALE, served=served)
    assert len(found.problems) == 8
    assert "; and 3 more." in verdict(found).message
