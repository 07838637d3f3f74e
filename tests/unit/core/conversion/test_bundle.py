"""Bundles contain all that a conversion needs, and nothing that only people read."""

import gzip
import json
from typing import Any

import pytest

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.core.conversion import bundle
from crdkeeper.core.conversion.bundle import BadBundle, digest, packed, unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion

STRING = {"type": "string", "description": "For people."}
SCHEMAS: dict[str, Any] = {
    "v1": {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "description": "For people.",
                "x-kubernetes-validations": [{"rule": "true"}],
                "properties": {"title": STRING, "description": STRING},
            }
        },
    },
    "v2": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"name": STRING, "description": STRING}}},
    },
}


def spec(**changes: Any) -> VersionConversionSpec:
    rules = [{"hub": "spec.name", "spoke": "spec.title"}]
    found = {
        "resource": {"group": "stable.example.com", "resource": "things"},
        "hub": "v2",
        "spokes": [{"version": "v1", "rules": rules}],
        **changes,
    }
    return VersionConversionSpec.model_validate(found)


def test_what_was_packed_converts() -> None:
    made = compile_conversion(*unpacked(packed(spec(), SCHEMAS)))
    assert isinstance(made, Conversion)
    value = {
        "apiVersion": "stable.example.com/v1",
        "kind": "Thing",
        "spec": {"title": "a", "description": "b"},
    }
    assert made.convert(value, "v2")["spec"] == {"name": "a", "description": "b"}


def test_fields_keep_their_names_and_texts_for_people_go() -> None:
    schemas = unpacked(packed(spec(), SCHEMAS)).schemas
    found = schemas["v1"]["properties"]["spec"]
    assert found == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "description": {"type": "string"}},
    }


def test_the_digest_tells_what_is_converted_and_nothing_else() -> None:
    one = packed(spec(), SCHEMAS)
    assert packed(spec(mode="Plan", replaceWebhook=True), SCHEMAS) == one
    assert digest(packed(spec(hub="v1"), SCHEMAS)) != digest(one)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no JSON"),
        gzip.compress(json.dumps({"rules": {}, "schemas": {}}).encode()),
        gzip.compress(b"[]"),
    ],
)
def test_what_is_no_bundle(content: bytes) -> None:
    with pytest.raises(BadBundle):
        unpacked(content)


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "_UNPACKED_BYTES", 100)
    with pytest.raises(BadBundle):
        unpacked(gzip.compress(b"[" + b"0," * 1000 + b"0]"))


def test_one_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_BYTES", 100)
    with pytest.raises(BadBundle, match="100 at most"):
        packed(spec(), SCHEMAS)
