"""The API server's OpenAPI v3 documents as schemas of templates."""

from typing import Any

from crdkeeper.core.templates.openapi import is_openapi, kinds_of_openapi
from tests.unit.core.templates.compositions import DATABASE, problems, rendered, result

META = "#/components/schemas/io.k8s.api."


def _ref(name: str, **beside: Any) -> dict[str, Any]:
    return {"allOf": [{"$ref": META + name}], "default": {}, **beside}


def _of(kind: str, group: str = "apps") -> dict[str, str]:
    return {"group": group, "version": "v1", "kind": kind}


def _path(kind: str, group: str = "apps") -> dict[str, Any]:
    return {"post": {"x-kubernetes-group-version-kind": _of(kind, group)}}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "paths": {
        "/apis/apps/v1/namespaces/{namespace}/things": _path("Thing"),
        "/apis/apps/v1/namespaces/{namespace}/things/{name}/eviction": _path("Eviction"),
        "/api/v1/zones": _path("Zone", ""),
    },
    "components": {
        "schemas": {
            "io.k8s.api.Thing": {
                "type": "object",
                "x-kubernetes-group-version-kind": [_of("Thing")],
                "properties": {"metadata": _ref("Meta"), "spec": _ref("Spec")},
            },
            "io.k8s.api.Zone": {
                "type": "object",
                "x-kubernetes-group-version-kind": [_of("Zone", "")],
                "properties": {"spec": _ref("Spec")},
            },
            "io.k8s.api.Options": {"type": "object", "x-kubernetes-group-version-kind": [_of("Options")]},
            "io.k8s.api.Meta": {"type": "object", "properties": {"name": {"type": "string"}}},
            "io.k8s.api.Spec": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer", "format": "int32"},
                    "port": {"$ref": META + "IntOrString"},
                    "limits": {"type": "object", "additionalProperties": _ref("Quantity")},
                    "raw": _ref("Raw"),
                    "inner": _ref("Spec"),
                    "items": {"type": "array", "items": _ref("Item")},
                },
            },
            "io.k8s.api.Item": {"type": "object", "properties": {"name": {"type": "string"}}},
            "io.k8s.api.Raw": {"type": "object"},
            "io.k8s.api.IntOrString": {
                "format": "int-or-string",
                "oneOf": [{"type": "integer"}, {"type": "string"}],
            },
            "io.k8s.api.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        }
    },
}
KINDS = kinds_of_openapi(DOCUMENT)


def thing(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "a"}
    return {
        "name": "a",
        "template": {"apiVersion": "apps/v1", "kind": "Thing", "metadata": metadata, "spec": spec},
    }


def test_kinds_that_can_be_created() -> None:
    assert is_openapi(DOCUMENT)
    assert not is_openapi({"swagger": "2.0"})
    assert not is_openapi([])
    assert {key: each.namespaced for key, each in KINDS.items()} == {
        ("apps/v1", "Thing"): True,
        ("v1", "Zone"): False,
    }


def test_templates_are_checked_by_them() -> None:
    good = thing(
        replicas="${composite.spec.replicas}",
        port="http",
        limits={"cpu": 0.5, "memory": "1Gi", "disk": "${composite.spec.engine}"},
        raw={"any": ["thing"]},
        inner={"what contains itself": "is not checked"},
        items=[{"name": "${composite.spec.engine}"}],
    )
    assert problems(good, kinds=KINDS) == []
    at = "spec.resources[0].template.spec"
    assert problems(thing(replicas="two", port=1.5, items=[{"nmae": "x"}]), kinds=KINDS) == [
        f"{at}.replicas: it is a string, and no integer",
        f"{at}.port: it is a number, and neither an integer nor a string",
        f"{at}.items[0].nmae: there is no such field | Did you mean name?",
    ]


def test_expressions_read_by_them() -> None:
    b = {**thing(port="${a.spec.port}", limits="${a.spec.limits}"), "name": "b"}
    b["template"] = {**b["template"], "metadata": {"name": "b"}}
    made = rendered(thing(port=80, limits={"cpu": "1"}), b, kinds=KINDS, given=DATABASE)
    assert made.objects[1]["spec"] == {"port": 80, "limits": {"cpu": "1"}}
    assert not result(thing(), kinds=KINDS).unverified


def test_documents_that_are_none() -> None:
    for broken in (
        {"components": 1, "paths": []},
        {"components": {"schemas": {"a": 1, "b": {"x-kubernetes-group-version-kind": [1]}}}},
        {"paths": {"/a": 1, "/b": {"post": {"x-kubernetes-group-version-kind": "x"}}}},
    ):
        assert kinds_of_openapi(broken) == {}


def test_a_kind_that_only_refers_to_itself_is_not_known() -> None:
    schemas = {"a": {"$ref": "#/components/schemas/a", "x-kubernetes-group-version-kind": [_of("Thing")]}}
    kinds = kinds_of_openapi({**DOCUMENT, "components": {"schemas": schemas}})
    b = {**thing(replicas="${a.status.whatever}"), "name": "b"}
    found = result(thing(), b, kinds=kinds)
    assert not found.problems
    assert len(found.unverified) == 2


def test_a_schema_without_an_end() -> None:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(900):
        nested = {"type": "array", "items": nested}
    schemas = {**DOCUMENT["components"]["schemas"], "io.k8s.api.Spec": {"$ref": META + "Spec"}}
    schemas["io.k8s.api.Thing"] = {**schemas["io.k8s.api.Thing"], "properties": {"spec": nested}}
    found = kinds_of_openapi({**DOCUMENT, "components": {"schemas": schemas}})
    assert ("apps/v1", "Thing") in found
