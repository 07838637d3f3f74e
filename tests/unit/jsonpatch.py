"""JSON patches (RFC 6902) as an API server applies them: add, remove, replace and test."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any


def patched(value: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """The value after a patch. Raises ValueError if a test fails."""
    value = copy.deepcopy(value)
    for each in operations:
        *path, last = (part.replace("~1", "/") for part in each["path"].split("/")[1:])
        at = value
        for part in path:
            at = at[int(part) if isinstance(at, list) else part]
        key = len(at) if last == "-" else int(last) if isinstance(at, list) else last
        if each["op"] == "test":
            if at[key] != each["value"]:
                raise ValueError(f"test failed: {each['path']}")
        elif each["op"] == "remove":
            del at[key]
        elif each["op"] == "add" and isinstance(at, list):
            at.insert(key, each["value"])
        else:
            at[key] = each["value"]
    return value
