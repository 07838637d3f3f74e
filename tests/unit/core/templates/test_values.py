"""What templates read of objects although rules of CRDs cannot, and how it is written again."""

import base64
from typing import Any

import pytest

from crdkeeper.core.templates.kinds import KnownKinds, TargetKind
from tests.unit.core.templates.compositions import TEXT, rendered, result, summary

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
BYTES = {"type": "string", "format": "byte"}
SPEC = {
    "type": "object",
    "properties": {
        "values": {"type": "object", **OPEN},
        "any": OPEN,
        "anything": {"type": "array", "items": OPEN},
        "parts": {"type": "object", "additionalProperties": OPEN},
        "key": BYTES,
        "text": TEXT,
        "day": {"type": "string", "format": "date"},
        "since": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "limits": {"type": "object", "additionalProperties": TEXT},
    },
}
COMPOSITE = TargetKind({"type": "object", "properties": {"spec": SPEC}}, True)
KINDS: KnownKinds = {
    ("v1", "Secret"): TargetKind(
        {
            "type": "object",
            "properties": {"data": {"type": "object", "additionalProperties": BYTES}, "spec": SPEC},
        },
        True,
    )
}


def composite(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "orders", "namespace": "shop"}
    return {"apiVersion": "example.com/v1", "kind": "Database", "metadata": metadata, "spec": fields}


def secret(name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": f"orders-{name}"}
    return {
        "name": name,
        "template": {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **fields},
    }


def spec_of(fields: Any, *, observed: Any = (), **given: Any) -> Any:
    """The spec of a Secret that is rendered for a composite with these fields."""
    made = rendered(
        secret("a", spec=fields),
        observed=observed,
        given=composite(**given),
        composite=COMPOSITE,
        kinds=KINDS,
    )
    assert not made.failed, summary(made)
    return made.objects[0]["spec"]


def refusals(**fields: Any) -> list[str]:
    found = result(secret("a", **fields), composite=COMPOSITE, kinds=KINDS).problems
    return [f"{each} | {each.hint}" if each.hint else str(each) for each in found]


@pytest.mark.parametrize(
    "expression",
    [
        "composite.spec.values.replicas",
        "composite.spec.values['replicas']",
        "composite.spec.any.replicas",
        "composite.spec.any.list[0]",
        "composite.spec.anything[0].replicas",
        "composite.spec.parts.x.replicas",
        "composite.spec.?any.?replicas.orValue(0)",
    ],
)
def test_what_a_schema_leaves_open_is_read(expression: str) -> None:
    given = {"replicas": 3, "list": [3]}
    values = {"values": given, "any": given, "anything": [given], "parts": {"x": given}}
    assert spec_of({"any": "${" + expression + "}"}, **values) == {"any": 3}


def test_open_parts_are_copied_as_a_whole() -> None:
    given = {"a": {"b": [1, 2.5, None, "x"], "c": None}}
    for field in ("any", "values"):
        assert spec_of({"any": "${composite.spec." + field + "}"}, **{field: given}) == {"any": given}


@pytest.mark.parametrize("size", [1, 16, 255])
def test_bytes_of_secrets_are_read_and_copied(size: int) -> None:
    for each in range(256):
        key = base64.b64encode(bytes([each]) * size).decode()
        made = spec_of(
            {"key": "${composite.spec.key}", "text": "${string(size(composite.spec.key))}"}, key=key
        )
        assert made == {"key": key, "text": str(size)}


def test_bytes_in_the_alphabet_of_urls_are_read() -> None:
    assert spec_of({"any": "${composite.spec.key == b'\\xfb\\xff'}"}, key="-_8=") == {"any": True}


def test_what_is_no_base64_has_no_value() -> None:
    for key in ("a", "====", "a b=", "!!!!"):
        made = rendered(
            secret("a", spec={"text": "${string(size(composite.spec.key))}"}),
            given=composite(key=key),
            composite=COMPOSITE,
            kinds=KINDS,
        )
        assert summary(made) == {"a": "failed a field of bytes is not base64"}


def test_a_string_is_no_bytes() -> None:
    hint = "Write bytes(…): it is encoded in base64."
    at = "spec.resources[0].template.data.p"
    kind = "gives a value of type string, but the field is string (byte)"
    assert refusals(data={"p": "${composite.spec.text}"}) == [f"{at}: column 3: {kind} | {hint}"]
    assert refusals(data={"p": "x${composite.spec.text}"}) == [
        f"{at}: a text, but the field has bytes in base64 | Write bytes(…) in one expression: it is encoded."
    ]
    assert refusals(data={"p": "no base64"}) == [f"{at}: it is no base64 | Write ${{bytes('…')}}."]
    found = refusals(data="${composite.spec.limits}")
    assert found == [f"spec.resources[0].template.data: column 3: in what it gives: {kind}"]
    assert refusals(data={"p": "cG9zdGdyZXM="}) == []


def test_bytes_of_a_string_are_encoded() -> None:
    made = rendered(
        secret("a", data={"p": "${bytes(composite.spec.text)}"}),
        given=composite(text="~?>"),
        composite=COMPOSITE,
        kinds=KINDS,
    )
    assert made.objects[0]["data"] == {"p": base64.b64encode(b"~?>").decode()}


def test_an_unchecked_string_that_is_no_base64_is_refused() -> None:
    for text, wanted in (("not base64!", "failed does not fit: it is no base64"), ("cG8=", "rendered")):
        made = rendered(
            secret("a", data={"p": "${composite.spec.any}"}),
            given=composite(any=text),
            composite=COMPOSITE,
            kinds=KINDS,
        )
        assert summary(made) == {"a": wanted}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("day", "2024-01-02"),
        ("since", "2024-01-02T03:04:05+02:00"),
        ("since", "2024-01-02T03:04:05.000Z"),
        ("wait", "90m"),
        ("wait", "3 days"),
    ],
)
def test_times_and_durations_keep_their_text(field: str, text: str) -> None:
    assert spec_of({field: "${composite.spec." + field + "}"}, **{field: text}) == {field: text}


def test_times_are_written_in_the_format_of_the_field() -> None:
    assert spec_of({"since": "${composite.spec.day}"}, day="2024-01-02") == {"since": "2024-01-02T00:00:00Z"}
    tomorrow = "${composite.spec.day + duration('24h')}"
    assert spec_of({"day": tomorrow}, day="2024-01-31") == {"day": "2024-02-01"}
    assert spec_of({"wait": "${composite.spec.wait + composite.spec.wait}"}, wait="90m") == {"wait": "3h0m0s"}


def test_a_time_of_day_is_no_date() -> None:
    made = rendered(
        secret("a", spec={"day": "${composite.spec.since}"}),
        given=composite(since="2024-01-02T03:04:05Z"),
        composite=COMPOSITE,
        kinds=KINDS,
    )
    assert summary(made) == {"a": "failed does not fit: it has a time of day, and a date has none"}


def test_maps_have_no_order() -> None:
    join = "${composite.spec.limits.map(key, key + '=' + composite.spec.limits[key])"
    given = composite(limits={"b": "2", "a": "1"})
    made = rendered(
        secret("a", spec={"text": join + ".join(',')}"}), given=given, composite=COMPOSITE, kinds=KINDS
    )
    assert summary(made) == {"a": "failed a map has no order"}
    assert made.resources[0].hint == "Sort what is made of it first, with .sort()."
    assert spec_of({"text": join + ".sort().join(',')}"}, limits=given["spec"]["limits"]) == {
        "text": "a=1,b=2"
    }


def test_fields_of_a_struct_are_compared() -> None:
    fields = {"spec": {"type": "object", "properties": {"text": TEXT, "limits": TEXT}}}
    kinds = {("v1", "Secret"): TargetKind({"type": "object", "properties": fields}, True)}
    found = result(secret("a", spec="${composite.spec}"), composite=COMPOSITE, kinds=kinds).problems
    assert [str(each) for each in found] == [
        "spec.resources[0].template.spec: column 3: in what it gives: values: there is no such field"
    ]
    fields["spec"]["properties"] = {**SPEC["properties"], "limits": TEXT}  # type: ignore[dict-item]
    found = result(secret("a", spec="${composite.spec}"), composite=COMPOSITE, kinds=kinds).problems
    assert [str(each) for each in found] == [
        "spec.resources[0].template.spec: column 3: in what it gives: "
        "limits: gives a value of type map(string, string), but the field is string"
    ]
    fields["spec"]["properties"] = SPEC["properties"]
    assert not result(secret("a", spec="${composite.spec}"), composite=COMPOSITE, kinds=kinds).problems
