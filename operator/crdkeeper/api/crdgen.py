"""Generates the CustomResourceDefinitions in `crds/` from the pydantic kinds, so that they always match.

python -m crdkeeper.api.crdgen crds

The schemas are structural, and equal to what controller-gen would generate from the same types in Go:
inlined, absent instead of null, and defaulted under spec. Status has neither defaults nor required fields:
the operator writes all of it, and a status written by another version must never be rejected.
"""

import argparse
import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, NoDefault
from pydantic_core import core_schema

from crdkeeper.api.compositekinds import COMPOSITE_KINDS
from crdkeeper.api.kinds import KINDS
from crdkeeper.api.meta import GROUP, UNSEEN, VERSION, Column, Kind

_HEADER = "# Generated from operator/crdkeeper/api by `python -m crdkeeper.api.crdgen crds`: edit there.\n"
_SPELLED_OUT = 2
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_TYPE_META: dict[str, Any] = {
    "apiVersion": {
        "description": "APIVersion defines the versioned schema of this representation of an object. Servers "
        "should convert recognized schemas to the latest internal value, and may reject unrecognized values. "
        f"More info: {_CONVENTIONS}#resources",
        "type": "string",
    },
    "kind": {
        "description": "Kind is a string value representing the REST resource this object represents. "
        "Servers may infer this from the endpoint the client submits requests to. Cannot be updated. "
        f"In CamelCase. More info: {_CONVENTIONS}#types-kinds",
        "type": "string",
    },
    "metadata": {"type": "object"},
}

# Keywords that mean the same in a CRD and in pydantic's JSON schema.
_SAME_MEANING = {
    *("type", "format", "description", "enum", "default", "pattern", "minimum", "maximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
}


def definition(kind: type[Kind]) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    singular = kind.__name__.lower()
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root(kind)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(each) for each in kind.columns],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/name": "crdkeeper"},
        },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.__name__,
                "listKind": f"{kind.__name__}List",
                "plural": kind.plural,
                "singular": singular,
                "shortNames": list(kind.short_names),
                "categories": ["crdkeeper"],
            },
            "scope": "Cluster",
            "versions": [version],
        },
    }


def schema_of(model: type[BaseModel], *, status: bool = False) -> dict[str, Any]:
    """The schema of a part of an object; `status`: without defaults and required fields, as of a status."""
    found: dict[str, Any] = json.loads(_part(model, status))
    return found


@cache
def _part(model: type[BaseModel], status: bool) -> str:
    """The part's schema, without structures shared with other schemas."""
    schema = model.model_json_schema(schema_generator=_Dialect)
    definitions = schema.pop("$defs", {})
    node = _structural(schema, definitions)
    return json.dumps(_without_obligations(node) if status else node)


def file_name(kind: type[Kind]) -> str:
    """The file of a kind's definition in `crds/`."""
    return f"{GROUP}_{kind.plural}.yaml"


def render(kind: type[Kind]) -> str:
    """The content of that file; equal models give equal bytes."""
    return f"{_HEADER}---\n{yaml.dump(definition(kind), Dumper=_Dumper, sort_keys=True, width=110)}"


class _Dumper(yaml.SafeDumper):
    """Repeats repeated content, because readers of a CRD don't expect YAML anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Dialect(GenerateJsonSchema):
    """Optional fields are absent, never null; the result of a default factory counts as the default.

    A field's description is its docstring, which is read from the source here. pydantic could read those of
    all models, but would do so whenever a process starts.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for name, text in _docstrings(model).items():
            field = model.model_fields[name]
            if field.description is None:
                found["properties"][field.alias or name]["description"] = text
        return found

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:
        default = super().get_default_value(schema)
        if "default_factory" in schema:
            default = cast(Callable[[], Any], schema["default_factory"])()
        if isinstance(default, BaseModel):
            # Only what differs from the fields' own defaults, which the API server fills in itself.
            return default.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return default if default not in (None, [], {}) else NoDefault


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings of a model's fields, also of those that it inherits."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            for field, text in pairwise(cast(ast.ClassDef, tree).body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(doc))):
                        found[name] = inspect.cleandoc(doc)
    return {name: doc for name, doc in found.items() if name in model.model_fields}


def _root(kind: type[Kind]) -> dict[str, Any]:
    schema = kind.model_json_schema(schema_generator=_Dialect)
    fields, definitions = schema["properties"], schema["$defs"]
    # Kinds that only the operator writes have no spec.
    spec = {"spec": _structural(fields["spec"], definitions)} if "spec" in fields else {}
    status = {"status": _status(_structural(fields["status"], definitions))}
    root = {
        "description": schema["description"],
        "type": "object",
        "properties": {**_TYPE_META, **spec, **status},
    }
    if kind.validations:
        root["x-kubernetes-validations"] = list(kind.validations)
    return root | ({"required": ["spec"]} if "spec" in schema["required"] else {})


def _status(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the status. Its one default marks objects that the controller has not seen yet."""
    return _without_obligations(schema) | {"default": {"observedGeneration": UNSEEN}}


def _structural(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], around: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The schema in the form that a CRD requires: references inlined, no titles, integers with a format.

    A CRD's schema cannot refer to itself: a recursive type is expanded `_SPELLED_OUT` times, and at deeper
    levels the API server accepts any object.
    """
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if around.count(name) >= _SPELLED_OUT:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        around = (*around, name)
        # Keywords next to the reference belong to the field, and override those of its type.
        schema = {**definitions[name], **schema}
    node: dict[str, Any] = {}
    for keyword, value in schema.items():
        match keyword:
            case "title" | "$ref":
                pass
            case "additionalProperties" if value is False:
                # pydantic's way to say that a model forbids other fields; a CRD prunes them.
                pass
            case "const":
                node["enum"] = [value]
            case "properties":
                node[keyword] = {name: _structural(each, definitions, around) for name, each in value.items()}
            case "items" | "additionalProperties":
                node[keyword] = _structural(value, definitions, around)
            case "required":
                node[keyword] = sorted(value)
            case _ if keyword in _SAME_MEANING or keyword.startswith("x-kubernetes-"):
                node[keyword] = value
            case _:
                raise ValueError(f"{schema.get('title', 'a field')}: {keyword!r} has no counterpart in a CRD")
    if node.get("type") == "integer":
        node.setdefault("format", "int32")
    return node


def _without_obligations(node: Mapping[str, Any], *, list_map_item: bool = False) -> dict[str, Any]:
    """The schema without defaults and required fields, except in the items of list maps: conditions."""
    dropped = {"default"} if list_map_item else {"default", "required"}
    bare = {keyword: value for keyword, value in node.items() if keyword not in dropped}
    if "properties" in bare:
        bare["properties"] = {name: _without_obligations(each) for name, each in bare["properties"].items()}
    is_list_map = bare.get("x-kubernetes-list-type") == "map"
    for keyword in {"items", "additionalProperties"} & bare.keys():
        bare[keyword] = _without_obligations(bare[keyword], list_map_item=is_list_map)
    return bare


def _column(column: Column) -> dict[str, Any]:
    optional = {"priority": column.priority, "description": column.description}
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        **{keyword: value for keyword, value in optional.items() if value},
    }


def kustomization(kinds: Iterable[type[Kind]] = KINDS) -> str:
    """The content of the `kustomization.yaml` beside the definitions, which lists the files."""
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(map(file_name, kinds)),
    }
    return yaml.dump(content, sort_keys=False)


def main() -> None:
    """Write the definitions of all kinds, and kustomizations that list them, into a directory.

    The composer's are in a directory below it.
    """
    parser = argparse.ArgumentParser(prog="python -m crdkeeper.api.crdgen", description=main.__doc__)
    parser.add_argument("directory", type=Path)
    directory: Path = parser.parse_args().directory
    for folder, kinds in ((directory, KINDS), (directory / "composer", COMPOSITE_KINDS)):
        folder.mkdir(exist_ok=True)
        for kind in kinds:
            (folder / file_name(kind)).write_text(render(kind), encoding="utf-8")
        (folder / "kustomization.yaml").write_text(kustomization(kinds), encoding="utf-8")


if __name__ == "__main__":
    main()
