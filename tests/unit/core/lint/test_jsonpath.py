"""Where the JSON paths of columns lead."""

from typing import Any

import pytest

from crdkeeper.core.lint.jsonpath import Lead, follow

TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "tags": {"type": "object", "additionalProperties": TEXT},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "half": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"size": {"type": "integer"}},
                },
                "ports": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"name": TEXT, "a.b": TEXT, "kind": {**TEXT, "enum": ["tcp", "udp"]}},
                    },
                },
                "any": {"x-kubernetes-int-or-string": True},
                "object": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object", "properties": {"a": TEXT}}},
                },
            },
        }
    },
}


@pytest.mark.parametrize(
    ("path", "lead", "type_"),
    [
        (".spec.size", Lead.FIELD, "integer"),
        (".spec['size']", Lead.FIELD, "integer"),
        (".spec.sise", Lead.NOWHERE, None),
        (".spec.size.more", Lead.NOWHERE, None),
        (".spec.size[0]", Lead.NOWHERE, None),
        (".spec.tags.a", Lead.FIELD, "string"),
        (r".spec.tags.example\.com/name", Lead.FIELD, "string"),
        (".spec.tags['a']", Lead.FIELD, "string"),
        (".spec.free.a.b", Lead.SOMEWHERE, None),
        (".spec.ports[0].name", Lead.FIELD, "string"),
        (r".spec.ports[0].a\.b", Lead.FIELD, "string"),
        (".spec.ports[*].nam", Lead.NOWHERE, None),
        (".spec.ports[-1].name", Lead.FIELD, "string"),
        (".spec.ports[0:2].name", Lead.FIELD, "string"),
        ('.spec.ports[?(@.name=="a")].name', Lead.FIELD, "string"),
        ('.spec.ports[?(@.id=="a")].name', Lead.NOWHERE, None),
        ('.spec.ports[?(@.kind=="tcp")].name', Lead.FIELD, "string"),
        ('.spec.ports[?(@.kind=="smtp")].name', Lead.NOWHERE, None),
        ('.spec.ports[?(@.kind!="smtp")].name', Lead.FIELD, "string"),
        (".spec.any", Lead.FIELD, None),
        (".spec.object.metadata.name", Lead.FIELD, "string"),
        (".spec.object.spec.a", Lead.FIELD, "string"),
        (".metadata.labels.a", Lead.FIELD, "string"),
        (".metadata.generation", Lead.FIELD, "integer"),
        (".metadata.nope", Lead.NOWHERE, None),
        (".kind", Lead.FIELD, "string"),
        ("..name", Lead.SOMEWHERE, None),
        (".spec.*", Lead.SOMEWHERE, None),
        (".spec.free.a", Lead.SOMEWHERE, None),
        (".spec.half.size", Lead.FIELD, "integer"),
        (".spec.half.more", Lead.SOMEWHERE, None),
        (".spec.tags[*]", Lead.NOWHERE, None),
        (".spec.ports.name", Lead.NOWHERE, None),
        (".spec.ports.length()", Lead.NOWHERE, None),
        (".spec['object.spec.a']", Lead.FIELD, "string"),
        (".spec.size}/{.spec.tags.a", Lead.SOMEWHERE, None),
        (".spec.size \u0378", Lead.SOMEWHERE, None),
        (".spec[", Lead.BROKEN, None),
        ('.spec["size"]', Lead.BROKEN, None),
    ],
)
def test_follow(path: str, lead: Lead, type_: str | None) -> None:
    target = follow(path, SCHEMA)
    assert target.lead is lead
    assert (target.schema or {}).get("type") == type_


def test_several_values() -> None:
    assert follow(".spec.ports[*].name", SCHEMA).many
    assert follow(".spec.ports[1:].name", SCHEMA).many
    assert follow(".spec.ports[-2:].name", SCHEMA).many
    for one in ("0", "-1", "-1:", "0:1", ":1", "-2:-1"):
        assert not follow(f".spec.ports[{one}].name", SCHEMA).many
