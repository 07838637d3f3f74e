"""Which fields of an object refer to a secret, so that a field beside them need not hold it.

Computed once for each object: an object may have thousands of fields, each with all others beside it.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.schema.props import Schema

_PLACES = frozenset(("key", "name", "namespace", "optional", "secretkeyref", "valuefrom"))
"""Fields of a reference to a secret."""
_ALTERNATIVE = re.compile(r"(?:secret|credentials?)(?:key)?(?:ref|name|selector)?$|valuefrom$")
"""Names of fields that refer to a secret instead of what stands beside them."""
_WRITTEN = re.compile(r"\bwill (?:store|create|write|save|sync|generate)\b", re.IGNORECASE)
"""Phrases in descriptions of a Secret that a controller writes."""


def plain(name: str) -> str:
    """A name in camel case, snake case or kebab case, in one spelling."""
    return name.lower().replace("_", "").replace("-", "")


class References:
    """The fields of one object that refer to a secret."""

    __slots__ = ("_alternatives", "_beside", "_names")

    def __init__(self, schema: Schema) -> None:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        self._names = sorted(map(plain, properties))
        self._beside: set[str] = set()
        self._alternatives: set[str] = set()
        for each, field in properties.items():
            name = plain(each)
            secretive = "secret" in name or "credential" in name
            if name in _PLACES or (secretive and not _is_written(field)):
                self._beside.add(each)
            if _ALTERNATIVE.search(name) and not _is_written(field):
                self._alternatives.add(each)

    def beside(self, name: str) -> bool:
        """Whether another field belongs to a reference, or has a longer name that begins with this one."""
        start = plain(name)
        longer = bisect_right(self._names, start)
        alike = longer < len(self._names) and self._names[longer].startswith(start)
        return alike or len(self._beside) > (name in self._beside)

    def instead_of(self, name: str) -> bool:
        """Whether another field refers to a secret instead."""
        return len(self._alternatives) > (name in self._alternatives)


def _is_written(field: Any) -> bool:
    return isinstance(field, dict) and bool(_WRITTEN.search(str(field.get("description") or "")))
