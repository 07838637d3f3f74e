"""Schemas, rules and objects of conversions, in short form."""

from collections.abc import Mapping
from typing import Any

import yaml

from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.scope import RuleError

GROUP = "stable.example.com"
STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def list_of(items: Any, *keys: str) -> dict[str, Any]:
    by = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": items, **by}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def crd(spec: Any) -> dict[str, Any]:
    """The schema of an object with such a spec."""
    return obj(apiVersion=STRING, kind=STRING, metadata={"type": "object"}, spec=spec)


def spec_of(spokes: Mapping[str, str], hub: str = "v1") -> VersionConversionSpec:
    return VersionConversionSpec.model_validate(
        {
            "resource": {"group": GROUP, "resource": "crontabs"},
            "hub": hub,
            "spokes": [
                {"version": name, "rules": yaml.safe_load(text) or []} for name, text in spokes.items()
            ],
        }
    )


def compiled(hub: Any, spokes: Mapping[str, tuple[Any, str]]) -> Conversion:
    """The conversion between specs of these schemas; the hub is v1."""
    schemas = {"v1": crd(hub), **{name: crd(schema) for name, (schema, _) in spokes.items()}}
    made = compile_conversion(spec_of({name: rules for name, (_, rules) in spokes.items()}), schemas)
    assert isinstance(made, Conversion), made
    return made


def errors(hub: Any, spoke: Any, rules: str) -> list[RuleError]:
    made = compile_conversion(spec_of({"v2": rules}), {"v1": crd(hub), "v2": crd(spoke)})
    assert not isinstance(made, Conversion), "compiles"
    return list(made)


def at(version: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "CronTab",
        "metadata": {"name": "a", "uid": "1", **metadata},
        "spec": spec,
    }
