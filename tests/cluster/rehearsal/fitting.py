"""Objects that match a schema: the engine checks each value, so that most of them can be stored."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

import orjson

from crdkeeper.apiserver.objects.objectschema import CannotCompile, ObjectSchema
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.violation import Report
from tests.cluster.objects.samples import FORMATTED, TEXTS

Json = Any
_TEXTS = (
    *(each for each in TEXTS if len(each) < 100),
    "abc-def",
    "Abc",
    "1h",
    "a.b",
    "aa",
    "zz",
    "0",
    "a" * 40,
)
_NUMBERS = (0, 1, 2, 3, 5, 7, 10, 80, 443, 1000, 65535, -1, 2**31, 1.5, 0.25)
_LOOSE = ("a", 1, True, {"a": "b"}, {"x": {"y": [1, {"z": None}]}}, ["a", 2], {"kind": "Pod", "n": 1})
_KEYS = ("a", "b", "c", "name", "app.kubernetes.io/name")
_RESOURCE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}, "data": {"k": "v"}}
_DEEPEST = 9
_TRIES = 6


class Unfit(Exception):
    """No value was found."""


class Maker:
    """Makes values for the schemas of one CRD."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._fits: dict[bytes, list[Json]] = {}

    def value(self, schema: Json, depth: int = 0) -> Json:
        """A value that matches, as far as one level shows. Raises Unfit."""
        random = self._random
        if schema.get("nullable") and random.random() < 0.2:
            return None
        kind = schema.get("type")
        if schema.get("enum"):
            return copy.deepcopy(random.choice(schema["enum"]))
        if schema.get("x-kubernetes-int-or-string"):
            return self._leaf(schema, (*_NUMBERS[:9], "http", "50%", "1", "100m", "1Gi"))
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            formatted = FORMATTED.get(str(schema.get("format", "")).replace("-", ""), ())
            return self._leaf(schema, (*formatted, *_TEXTS, *(schema.get("examples") or ())))
        if kind in ("integer", "number"):
            bounds = [schema[key] for key in ("minimum", "maximum") if key in schema]
            return self._leaf(schema, (*bounds, *_NUMBERS))
        if kind == "boolean":
            return random.choice((True, False))
        return copy.deepcopy(random.choice(_LOOSE))

    def _leaf(self, schema: Json, candidates: tuple[Json, ...]) -> Json:
        key = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)
        fits = self._fits.get(key)
        if fits is None:
            compiled = compiled_schema({"type": "object", "properties": {"v": schema}})
            fits = [
                each
                for each in candidates
                if compiled is None or compiled.admit({"metadata": {"name": "x"}, "v": each}).accepted
            ]
            self._fits[key] = fits
        if not fits:
            raise Unfit
        return copy.deepcopy(self._random.choice(fits))

    def _array(self, schema: Json, depth: int) -> list[Json]:
        random = self._random
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        number = max(least, min(most, random.choice((0, 1, 1, 2, 2, 3)) if depth < _DEEPEST else 0))
        items = [self.value(schema.get("items") or {}, depth + 1) for _ in range(number)]
        unique: dict[bytes, Json] = {}
        names = schema.get("x-kubernetes-list-map-keys") or ()
        for each in items:
            known = {name: each.get(name) for name in names} if names and isinstance(each, dict) else each
            unique.setdefault(orjson.dumps(known), each)
        # In a list without a type, duplicates conflict with a later list type.
        if schema.get("x-kubernetes-list-type") in ("set", "map"):
            return list(unique.values())
        if items and number < most and random.random() < 0.3:
            items.append(copy.deepcopy(random.choice(items)))
        return items

    def _object(self, schema: Json, depth: int) -> dict[str, Json]:
        random = self._random
        found: dict[str, Json] = {}
        if schema.get("x-kubernetes-embedded-resource"):
            found |= copy.deepcopy(_RESOURCE)
        required = set(schema.get("required") or ())
        properties = schema.get("properties") or {}
        share = 0.7 if len(properties) < 8 or depth < 2 else min(0.4, 5 / len(properties))
        for name, each in properties.items():
            if name in found and schema.get("x-kubernetes-embedded-resource"):
                continue
            if name not in required and (depth > _DEEPEST or random.random() > share):
                continue
            try:
                found[name] = self.value(each, depth + 1)
            except Unfit:
                if name in required:
                    raise
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict) and depth < _DEEPEST:
            for key in random.sample(_KEYS, random.choice((0, 1, 2))):
                found[key] = self.value(additional, depth + 1)
        if schema.get("x-kubernetes-preserve-unknown-fields") and random.random() < 0.7:
            found.setdefault("unknown", copy.deepcopy(random.choice(_LOOSE)))
        return found


def compiled_schema(schema: Json) -> ObjectSchema | None:
    """The engine's form of a schema; None if it has none."""
    report = Report()
    decoded = SCHEMA.decode(schema, root("schema"), report)
    if decoded is ABSENT or report.violations:
        return None
    try:
        return ObjectSchema.of(decoded)
    except CannotCompile:
        return None


def objects(crd: Json, count: int, random: Random) -> Iterator[Json]:
    """Objects of a CRD in its storage version, most of which the API server accepts; perhaps fewer."""
    spec = crd["spec"]
    storage = next(each for each in spec["versions"] if each["storage"])
    schema = storage["schema"]["openAPIV3Schema"]
    compiled = compiled_schema(schema)
    maker = Maker(random)
    for i in range(count):
        for _ in range(_TRIES):
            obj = {
                "apiVersion": f"{spec['group']}/{storage['name']}",
                "kind": spec["names"]["kind"],
                "metadata": {"name": f"o{i}", "labels": {"number": str(i)}},
            }
            if spec["scope"] == "Namespaced":
                obj["metadata"]["namespace"] = "default"
            for name, each in (schema.get("properties") or {}).items():
                if name in ("apiVersion", "kind", "metadata", "rehearsalMarker"):
                    continue
                if name in (schema.get("required") or ()) or random.random() < 0.9:
                    try:
                        obj[name] = maker.value(each, 1)
                    except Unfit:
                        continue
            if schema.get("x-kubernetes-preserve-unknown-fields"):
                obj.setdefault("extra", {"a": [1, "b"]})
            if compiled is None or compiled.admit(obj).accepted:
                yield obj
                break
