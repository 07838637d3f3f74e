"""Converts a schema from v1beta1 times to the form that v1 requires: a structural skeleton.

Missing types are added if the other keywords leave no choice. Otherwise the schema accepts any value, and a
note tells a person.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final

from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, LIST_TYPE, MAP_TYPE, PRESERVE
from crdkeeper.core.upgrade import topics
from crdkeeper.core.upgrade.topics import Topic

Node = dict[str, Any]
Tell = Callable[[Topic, Path, str], None]

_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_TELLING: Final = {
    "object": (
        "properties",
        "additionalProperties",
        "required",
        "minProperties",
        "maxProperties",
        EMBEDDED,
        MAP_TYPE,
    ),
    "array": ("items", "minItems", "maxItems", LIST_TYPE),
    "string": ("pattern", "minLength", "maxLength"),
}
_FORMATS: Final = {
    "int32": "integer",
    "int64": "integer",
    "float": "number",
    "double": "number",
    "date": "string",
    "date-time": "string",
    "duration": "string",
    "byte": "string",
    "email": "string",
    "hostname": "string",
    "ipv4": "string",
    "ipv6": "string",
    "uri": "string",
    "uuid": "string",
}
_META: Final = {"apiVersion": "string", "kind": "string", "metadata": "object"}
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]
_NOT_IN_JUNCTORS: Final = ("default", "nullable", PRESERVE, EMBEDDED, INT_OR_STRING, LIST_TYPE, MAP_TYPE)


class _Holds(Enum):
    """Whether what a branch says holds for each valid value."""

    ALWAYS = "it is in allOf, or the only one"
    SOMETIMES = "it is one of several"
    NEVER = "it is in not"

    def inside(self, key: str, branches: Any) -> "_Holds":
        """The same for the branches of a keyword in this one."""
        if key == "not" or self is _Holds.NEVER:
            return _Holds.NEVER
        always = self is _Holds.ALWAYS and (key == "allOf" or len(branches) == 1)
        return _Holds.ALWAYS if always else _Holds.SOMETIMES


def make_structural(schema: Node, path: Path, tell: Tell) -> None:
    """Change a schema in place; `path` is its place in the old manifest."""
    _repair_root(schema, path, tell)
    _repair(schema, path, tell, root=True)


def _repair_root(schema: Node, path: Path, tell: Tell) -> None:
    if schema.get("type") is None:
        schema["type"] = "object"
        tell(topics.TYPE_ADDED, path.child("type"), "object")
    if schema.pop("additionalProperties", None):
        schema[PRESERVE] = True
        tell(topics.ROOT_ADDITIONAL, path.child("additionalProperties"), "removed")
    properties = schema.get("properties")
    metadata = properties.get("metadata") if isinstance(properties, dict) else None
    if not isinstance(metadata, dict) or not isinstance(properties, dict):
        return
    known = metadata.get("properties")
    names = (
        {key: each for key, each in known.items() if key in ("name", "generateName")}
        if isinstance(known, dict)
        else {}
    )
    left: Node = {"type": "object", **({"properties": names} if names else {})}
    lost = sorted(metadata.keys() - {"type", "properties", "description"})
    lost += sorted(
        f"properties.{key}" for key in (known if isinstance(known, dict) else {}) if key not in names
    )
    properties["metadata"] = left
    if lost:
        at = path.child("properties").key("metadata")
        tell(topics.ROOT_METADATA, at, f"removed {', '.join(lost)}")


def _repair(schema: Node, path: Path, tell: Tell, *, root: bool = False) -> None:
    if schema.get(PRESERVE) is False:
        del schema[PRESERVE]
    if root or schema.get(EMBEDDED):
        _add_meta_types(schema, path, tell)
    either = _int_or_string(schema, path, tell)
    if not schema.get(INT_OR_STRING) and not schema.get("type"):
        _lift_type(schema, path, tell)
    if not root:
        _add_type(schema, path, tell)
    if either or not schema.get(INT_OR_STRING):
        _strip_junctors(schema, schema, path, tell, _Holds.ALWAYS)
    if either and not schema.get("anyOf"):
        # An anyOf of its own stays instead: the extension alone says as much.
        schema["anyOf"] = [dict(each) for each in _EITHER]
    for each, at in _parts(schema, path):
        _repair(each, at, tell)
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        schema["items"] = {PRESERVE: True}
        tell(topics.ITEMS_UNKNOWN, path.child("items"), "any item is accepted")


def _parts(schema: Node, path: Path) -> Iterator[tuple[Node, Path]]:
    """The schemas of the values inside a value."""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        below = path.child("properties")
        yield from ((each, below.key(name)) for name, each in properties.items() if isinstance(each, dict))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield schema[key], path.child(key)


def _branches(schema: Node, path: Path) -> Iterator[tuple[str, Node, Path]]:
    """Further schemas of the same value, each with its keyword: allOf, anyOf, oneOf and not."""
    for key in _JUNCTORS:
        branches = schema.get(key)
        if isinstance(branches, list):
            at = path.child(key)
            yield from ((key, each, at.index(i)) for i, each in enumerate(branches) if isinstance(each, dict))
    if isinstance(schema.get("not"), dict):
        yield "not", schema["not"], path.child("not")


def _int_or_string(schema: Node, path: Path, tell: Tell) -> bool:
    """Mark an integer or string, and take out what else says so. Returns whether there was such."""
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list) and sorted(branches, key=str) == _EITHER:
            del schema[key]
            break
    else:
        if schema.get("format") != "int-or-string":
            return False
    schema.pop("type", None)
    if schema.get("format") == "int-or-string":
        del schema["format"]
    if not schema.get(INT_OR_STRING):
        schema[INT_OR_STRING] = True
        tell(topics.INT_OR_STRING, path, "written as x-kubernetes-int-or-string")
    return True


def _lift_type(schema: Node, path: Path, tell: Tell) -> None:
    found = {each["type"] for _, each, _ in _branches(schema, path) if isinstance(each.get("type"), str)}
    negated = isinstance(schema.get("not"), dict) and schema["not"].get("type")
    if len(found) == 1 and not negated and all(_says_type(schema.get(key)) for key in _JUNCTORS):
        schema["type"] = found.pop()
        tell(topics.JUNCTOR_TYPE, path.child("type"), f"{schema['type']}, from inside")


def _says_type(branches: Any) -> bool:
    """Whether all branches of a junctor name a type, or none does."""
    if not isinstance(branches, list):
        return True
    return len({"type" in each for each in branches if isinstance(each, dict)}) < 2


def _add_type(schema: Node, path: Path, tell: Tell) -> None:
    if schema.get("type") or schema.get(INT_OR_STRING):
        return
    type_ = _certain_type(schema)
    if type_ is not None:
        schema["type"] = type_
        tell(topics.TYPE_ADDED, path.child("type"), type_)
    elif not schema.get(PRESERVE):
        schema[PRESERVE] = True
        tell(topics.TYPE_UNKNOWN, path.child("type"), "any value is accepted")


def _add_meta_types(schema: Node, path: Path, tell: Tell) -> None:
    """The fields that every object has can have only one type."""
    properties = schema.get("properties")
    for name, type_ in _META.items():
        each = properties.get(name) if isinstance(properties, dict) else None
        if isinstance(each, dict) and not each.get("type"):
            each["type"] = type_
            tell(topics.TYPE_ADDED, path.child("properties").key(name).child("type"), type_)


def _certain_type(schema: Node) -> str | None:
    """The only type for which the keywords of a schema make sense; None if there is none or several."""
    found = {type_ for type_, keys in _TELLING.items() if any(key in schema for key in keys)}
    if isinstance(schema.get("format"), str) and schema["format"] in _FORMATS:
        found.add(_FORMATS[schema["format"]])
    values = list(schema["enum"]) if isinstance(schema.get("enum"), list) else []
    values += [schema["default"]] if schema.get("default") is not None else []
    found |= {_type_of(each) for each in values if each is not None}
    if found == {"integer", "number"}:
        return "number"
    return found.pop() if len(found) == 1 else None


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _strip_junctors(schema: Node, outer: Node, path: Path, tell: Tell, holds: _Holds) -> bool:
    """Strip all branches of a schema. Returns whether it accepts more than before.

    Where a branch accepts more, oneOf and not would accept less.
    """
    if holds is _Holds.ALWAYS and not outer.get("additionalProperties"):
        _define_common(schema, outer, path, tell)
    loosened = set()
    for key, each, at in _branches(schema, path):
        if _strip(each, outer, at, tell, holds.inside(key, schema[key])):
            loosened.add(key)
    if "not" in loosened:
        del schema["not"]
        tell(topics.JUNCTOR_LOOSENED, path.child("not"), "removed")
    if "oneOf" in loosened:
        branches, all_of = schema.pop("oneOf"), schema.get("allOf")
        if schema.get("anyOf"):
            schema["allOf"] = [*(all_of if isinstance(all_of, list) else ()), {"anyOf": branches}]
        else:
            schema["anyOf"] = branches
        tell(topics.JUNCTOR_LOOSENED, path.child("oneOf"), "written as anyOf")
    return bool(loosened)


def _define_common(schema: Node, outer: Node, path: Path, tell: Tell) -> None:
    """Define outside the fields to which all branches give the same type: it holds in every case."""
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if not isinstance(branches, list) or not branches:
            continue
        first, *others = map(_fields, branches)
        for name, each in first.items():
            type_ = _said_type(each)
            everywhere = type_ and all(_said_type(other.get(name)) == type_ for other in others)
            # The metadata in branches is removed.
            if not everywhere or name == "metadata" or name in _fields(outer):
                continue
            if not isinstance(outer.get("properties"), dict):
                outer["properties"] = {}
            outer["properties"][name] = {"type": type_}
            at = path.child(key).index(0).child("properties").key(name)
            tell(topics.JUNCTOR_FIELD, at, "also defined outside")


def _fields(schema: Any) -> Node:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _said_type(field: Any) -> Any:
    """The type that the keywords of one branch give a field; None if they tell none."""
    return (field.get("type") or _certain_type(field)) if isinstance(field, dict) else None


def _strip(nested: Node, outer: Node, path: Path, tell: Tell, holds: _Holds) -> bool:
    """Keep in a branch what is allowed there, and define outside what it refers to.

    Returns whether the branch accepts more than before.
    """
    for key in ("title", "description"):
        if nested.pop(key, None) is not None:
            tell(topics.JUNCTOR_TEXT, path.child(key), "removed")
    loosened = False
    type_ = nested.pop("type", None)
    if type_ is not None:
        loosened = type_ != outer.get("type")
        topic = topics.JUNCTOR_TYPES_DIFFER if loosened else topics.JUNCTOR_TYPE
        tell(topic, path.child("type"), f"removed {type_}")
    for key in _NOT_IN_JUNCTORS:
        if nested.pop(key, None):
            # None of the others restricts a value.
            loosened |= key == INT_OR_STRING
            tell(topics.JUNCTOR_KEYWORD, path.child(key), "removed")
    if nested.get("additionalProperties", False) is not False:
        loosened |= isinstance(nested.pop("additionalProperties"), dict)
        tell(topics.JUNCTOR_KEYWORD, path.child("additionalProperties"), "removed")
    loosened |= _strip_fields(nested, outer, path, tell, holds)
    items = nested.get("items")
    if isinstance(items, dict):
        at = path.child("items")
        if not isinstance(outer.get("items"), dict):
            outer["items"] = _outline(items, at, tell, holds)
        loosened |= _strip(items, outer["items"], at, tell, holds)
    return _strip_junctors(nested, outer, path, tell, holds) or loosened


def _strip_fields(nested: Node, outer: Node, path: Path, tell: Tell, holds: _Holds) -> bool:
    properties = nested.get("properties")
    if not isinstance(properties, dict):
        return False
    loosened = False
    if properties.pop("metadata", None) is not None:
        loosened = True
        tell(topics.JUNCTOR_KEYWORD, path.child("properties").key("metadata"), "removed")
    if outer.get("additionalProperties"):
        del nested["properties"]
        tell(topics.JUNCTOR_KEYWORD, path.child("properties"), "removed, since the object is a map")
        return True
    if properties and not isinstance(outer.get("properties"), dict):
        outer["properties"] = {}
    for name, each in properties.items():
        if not isinstance(each, dict):
            continue
        at = path.child("properties").key(name)
        if name not in outer["properties"]:
            outer["properties"][name] = _outline(each, at, tell, holds)
            tell(topics.JUNCTOR_FIELD, at, "also defined outside")
        defined = outer["properties"][name]
        if isinstance(defined, dict):
            loosened |= _strip(each, defined, at, tell, holds)
    return loosened


def _outline(nested: Node, path: Path, tell: Tell, holds: _Holds) -> Node:
    """The beginning of a structural schema for what only a branch refers to; without type if none holds."""
    type_ = _said_type(nested)
    if not type_ or holds is _Holds.NEVER:
        return {}
    if holds is _Holds.SOMETIMES:
        tell(topics.JUNCTOR_FIELD_TYPE, path.child("type"), f"{type_} in every case now")
    return {"type": type_}
