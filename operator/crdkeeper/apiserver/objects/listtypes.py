"""Sets without duplicates, map lists with unique keys (apiextensions-apiserver: schema/listtype)."""

from typing import Any, Final

from crdkeeper.apiserver.golang.text import json_text
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.valuerules import LIST_TYPE
from crdkeeper.apiserver.schema.finding import (
    DUPLICATE,
    INVALID,
    MOST_FINDINGS,
    NO_FINDINGS,
    FieldError,
    FieldErrors,
    Step,
    below,
)

_NO_KEY: Final = object()


def check_list_types(value: Any, node: ObjectNode) -> FieldErrors:
    """Duplicates in a value's sets and map lists; of several equal items, the second is named.

    It ends with `MOST_FINDINGS`.
    """
    if not node.has_list_types:
        return NO_FINDINGS
    found: list[FieldError] = []
    if type(value) is dict:
        for key, each in value.items():
            child = node.child(key)
            if child is not None and child.has_list_types:
                step = Step.FIELD if key in node.properties else Step.KEY
                found += below(step, key, check_list_types(each, child))
                if len(found) >= MOST_FINDINGS:
                    break
    elif type(value) is list:
        if node.list_type == "set":
            found += _duplicates(value, value)
        elif node.list_type == "map":
            found += _map_list(value, node.map_keys)
        if node.items is not None and node.items.has_list_types:
            for i, each in enumerate(value):
                found += below(Step.INDEX, i, check_list_types(each, node.items))
                if len(found) >= MOST_FINDINGS:
                    break
    return found


def _duplicates(items: list[Any], shown: list[Any]) -> list[FieldError]:
    if len(items) <= 1:
        return []
    seen: dict[tuple[type, Any], int] = {}
    found: list[FieldError] = []
    for i, each in enumerate(items):
        # An integer and a float are never equal, but inside objects and arrays they are compared as written.
        identity = json_text(each) if isinstance(each, dict | list) else each
        key = (type(each) if not isinstance(each, dict | list) else dict, identity)
        times = seen.get(key, 0)
        seen[key] = times + 1
        if times == 1:
            found += below(Step.INDEX, i, [FieldError(LIST_TYPE, DUPLICATE, shown[i], "")])
            if len(found) >= MOST_FINDINGS:
                break
    return found


def _map_list(items: list[Any], keys: list[str]) -> list[FieldError]:
    for i, each in enumerate(items):
        if each is not None and not isinstance(each, dict):
            detail = "must be an object for an array of list-type map"
            return list(below(Step.INDEX, i, [FieldError(LIST_TYPE, INVALID, each, detail)]))
    chosen = [{key: each[key] for key in keys if each is not None and key in each} for each in items]
    if len(keys) == 1:
        return _duplicates([each.get(keys[0], _NO_KEY) for each in chosen], chosen)
    return _duplicates(list(chosen), chosen)
