"""The rules of x-kubernetes-list-type, -list-map-keys and -map-type."""

from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, Schema
from crdkeeper.apiserver.schema.violation import OMITTED, Report


def check_map_type(schema: Schema, path: Path, report: Report) -> None:
    """x-kubernetes-map-type."""
    map_type = schema.get(MAP_TYPE)
    if map_type is None:
        return
    _check_owner(schema, "object", MAP_TYPE, path, report, rules.MAP_TYPE)
    if map_type not in ("atomic", "granular"):
        report.not_supported(rules.MAP_TYPE, path.child(MAP_TYPE), map_type, ("atomic", "granular"))


def check_list(schema: Schema, path: Path, report: Report, *, atomic_items: bool) -> None:
    """x-kubernetes-list-type; `atomic_items` says whether the items of a set must be atomic."""
    list_type, keys = schema.get(LIST_TYPE), schema.get(LIST_MAP_KEYS)
    if list_type is None and not keys:
        return
    at = path.child(LIST_TYPE)
    if list_type is not None:
        fits = _check_owner(schema, "array", LIST_TYPE, path, report, rules.LIST_TYPE)
        if fits and atomic_items and list_type == "set":
            _check_atomic_items(schema, path, report)
        if list_type not in ("atomic", "set", "map"):
            report.not_supported(rules.LIST_TYPE, at, list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        detail = f"must be map if {LIST_MAP_KEYS} is non-empty"
        if list_type is None:
            report.required(rules.LIST_MAP, at, detail)
        else:
            report.invalid(rules.LIST_MAP, at, list_type, detail)
    if list_type == "map":
        _check_map(schema, path, report)


def _check_owner(
    schema: Schema, wanted: str, keyword: str, path: Path, report: Report, rule: rules.Rule
) -> bool:
    type_ = schema.get("type", "")
    detail = f"must be {wanted} if {keyword} is specified"
    if type_ == wanted:
        return True
    if type_:
        report.invalid(rule, path.child("type"), type_, detail)
    else:
        report.required(rule, path.child("type"), detail)
    return False


def _check_atomic_items(schema: Schema, path: Path, report: Report) -> None:
    items = schema.get("items")
    if not isinstance(items, dict):
        return
    detail = f"must be atomic as item of a list with {LIST_TYPE}=set"
    at = path.child("items")
    # In both cases the server shows the list type of the items, even when it means their map type.
    shown = items.get(LIST_TYPE)
    if items.get("type") == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        report.invalid_as_json(rules.SET_ITEMS, at.child(LIST_TYPE), shown, detail)
    elif items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        report.invalid_as_json(rules.SET_ITEMS, at.child(MAP_TYPE), shown, detail)


def _check_map(schema: Schema, path: Path, report: Report) -> None:
    keys, items = schema.get(LIST_MAP_KEYS, []), schema.get("items")
    keys_at, items_at = path.child(LIST_MAP_KEYS), path.child("items")
    if not keys:
        report.required(rules.LIST_MAP, keys_at, f"must not be empty if {LIST_TYPE} is map")
    if items is None:
        report.required(rules.LIST_MAP, items_at, f"must have a schema if {LIST_TYPE} is map")
        return
    if not isinstance(items, dict):
        detail = f"must only have a single schema if {LIST_TYPE} is map"
        report.invalid(rules.LIST_MAP, items_at, OMITTED, detail)
        return
    if items.get("type") != "object":
        detail = f"must be object if parent array's {LIST_TYPE} is map"
        report.invalid(rules.LIST_MAP, items_at.child("type"), items.get("type", ""), detail)
        return
    properties = items.get("properties", {})
    seen: set[str] = set()
    for key in keys:
        if key not in properties:
            report.invalid(rules.LIST_MAP, keys_at, keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            at = items_at.child("properties").key(key).child("type")
            report.invalid(rules.LIST_MAP, at, "object", detail)
        if key in seen:
            report.invalid(rules.LIST_MAP, keys_at, keys, "must not contain duplicate entries")
        seen.add(key)


def check_key_nulls(schema: Schema, path: Path, report: Report) -> None:
    """Items of sets and map lists, and the keys of map lists: whether they can be null or missing."""
    items = schema.get("items")
    if not isinstance(items, dict) or schema.get(LIST_TYPE) not in ("set", "map"):
        return
    at = path.child("items")
    if items.get("nullable"):
        detail = f"cannot be nullable when {LIST_TYPE} is {schema[LIST_TYPE]}"
        report.forbidden(rules.SET_ITEMS, at.child("nullable"), detail)
    if schema[LIST_TYPE] != "map":
        return
    properties, required = items.get("properties", {}), frozenset(items.get("required", ()))
    for key in schema.get(LIST_MAP_KEYS, ()):
        if key not in properties:
            continue
        key_at = at.child("properties").key(key)
        beginning = f"this property is in {LIST_MAP_KEYS}, so it"
        if key not in required and "default" not in properties[key]:
            detail = f"{beginning} must have a default or be a required property"
            report.required(rules.LIST_MAP, key_at.child("default"), detail)
        if properties[key].get("nullable"):
            report.forbidden(rules.LIST_MAP, key_at.child("nullable"), f"{beginning} cannot be nullable")
