"""What lint says about a definition, as a condition counts it."""

import copy
from typing import Any

from crdkeeper.api.texts import LINE_BYTES
from crdkeeper.core.composer.advice import Advice, advise
from crdkeeper.core.composition.acceptance import accept
from crdkeeper.core.lint.annotation import ANNOTATION
from tests.unit.core.composition.documents import SPEC, document, schema, version

Json = Any
POINTLESS = {"type": "string", "minimum": 1}
SAID = "v1:.spec.a: minimum has no effect on type string [keyword-type]. "
WEBHOOK = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {}}}
RESERVED = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[crdkeeper]"


def spec(**fields: Json) -> Json:
    return {**SPEC, "properties": {**SPEC["properties"], **fields}}


def advice(value: Json, conversion: Json = None) -> Advice:
    judged = accept(value)
    assert judged.crd is not None
    live = {**copy.deepcopy(judged.crd), "spec": {**judged.crd["spec"], "conversion": conversion}}
    return advise(value, judged, live if conversion is not None else None)


def ignoring(*lines: str) -> Json:
    return {"annotations": {ANNOTATION: "\n".join(lines)}}


def test_what_crdkeeper_adds_and_what_is_info_do_not_count() -> None:
    assert advice(document()) == Advice()
    names = {"kind": "Database", "plural": "databases", "shortNames": ["db"]}
    assert advice(document(names=names)) == Advice()


def test_a_warning_is_named_with_its_remedy() -> None:
    found = advice(document(version(of=schema(spec(a=POINTLESS)))))
    assert found.number == 1
    assert found.first.startswith(SAID)
    assert found.first.endswith(".")


def test_an_error_comes_first_and_refuses_nothing() -> None:
    value = document(version(of=schema({**spec(a=POINTLESS), "required": ["engine", "missing"]})))
    found = advice(value)
    assert found.number == 2
    assert found.first.startswith("v1:.spec: requires missing, which it does not define [required-undefined]")
    assert not accept(value).refused


def test_a_keyword_that_the_api_server_drops_is_a_warning() -> None:
    found = advice(document(version(of=schema(spec(a={"type": "string", "maxLenght": 3})))))
    assert found.number == 1
    assert 'unknown field "spec.versions[0].schema.openAPIV3Schema.properties[spec]' in found.first


def test_the_same_in_two_versions_counts_once() -> None:
    of = schema(spec(a=POINTLESS))
    found = advice(document(version(of=of), version("v2", of, referenceable=False)))
    assert found.number == 1
    assert "(also in v2)" in found.first


def test_what_the_author_ignores_with_a_reason_does_not_count() -> None:
    of = version(of=schema(spec(a=POINTLESS)))
    line = "keyword-type .spec.a: for our forms"
    value = document(of)
    value["spec"]["metadata"] = ignoring(line)
    assert advice(value) == Advice()
    value["spec"]["metadata"] = ignoring(line, "bounds .spec.a: as before")
    found = advice(value)
    assert found.number == 1
    assert found.first.startswith(f"spec.metadata.annotations[{ANNOTATION}]: bounds is ignored, but ")


def test_what_crdkeeper_replaces_is_a_warning_that_can_be_ignored() -> None:
    value = document(version(of=schema(spec(crdkeeper={"type": "string"}, a=POINTLESS))))
    found = advice(value)
    assert found.number == 2
    assert found.first.startswith(f"{RESERVED}: crdkeeper is reserved [composite-reserved]. Every composite ")
    for field in ("*", RESERVED):
        value["spec"]["metadata"] = ignoring(f"composite-reserved {field}: as before")
        found = advice(value)
        assert (found.number, found.first.startswith(SAID)) == (1, True)


def test_nothing_is_said_of_what_is_refused() -> None:
    value = document(version(of=schema({**spec(a=POINTLESS), "maxProperties": 1})))
    assert accept(value).refused
    assert advice(value) == Advice()


def test_fields_that_only_one_version_has_are_lost_unless_a_webhook_converts() -> None:
    versions = [version(), version("v2", schema(spec(a={"type": "string"})), referenceable=False)]
    assert "conversion-loss" in advice(document(*versions)).first
    assert advice(document(*versions), WEBHOOK) == Advice()


def test_many_findings_are_one_short_text() -> None:
    long = "x" * 3_000
    fields = {f"{long}{number}": POINTLESS for number in range(200)}
    found = advice(document(version(of=schema(spec(**fields)))))
    assert found.number == 200
    assert len(found.first.encode()) <= LINE_BYTES


def test_a_schema_that_is_nested_too_deeply_is_left_alone() -> None:
    deep: Json = {"type": "string"}
    for _ in range(3_000):
        deep = {"type": "object", "properties": {"a": deep}}
    value = document()
    judged = accept(value)
    assert judged.crd is not None
    judged.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = deep
    assert advise(value, judged, None) == Advice()
