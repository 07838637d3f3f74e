"""CRDs in few words, and changes as short strings."""

import copy
from collections.abc import Callable
from typing import Any

from crdkeeper.core.compatibility.change import Audience, Change, Effects, Impact
from crdkeeper.core.compatibility.compare import Comparison, compare

Json = dict[str, Any]
STRING: Json = {"type": "string"}

_LETTERS = {Audience.WRITERS: "W", Audience.READERS: "R", Audience.STORED: "S", Audience.OPERATORS: "O"}
_MARKS = {Impact.BREAKING: "!", Impact.RISKY: "?", Impact.SAFE: ""}


def obj(**properties: Any) -> Json:
    """An object with these fields."""
    return {"type": "object", "properties": properties}


def version(name: str = "v1", schema: Json | None = None, **fields: Any) -> Json:
    """A served version."""
    return {
        "name": name,
        "served": True,
        "storage": False,
        "schema": {"openAPIV3Schema": obj(spec=obj(a=STRING)) if schema is None else schema},
        **fields,
    }


def crd(*versions: Json, stored: list[str] | None = None, **spec: Any) -> Json:
    """A CRD; the first version is the storage version if none is."""
    made = [copy.deepcopy(each) for each in versions or (version(),)]
    if not any(each["storage"] for each in made):
        made[0]["storage"] = True
    document: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": made,
            **spec,
        },
    }
    if stored is not None:
        document["status"] = {"storedVersions": stored}
    return document


def short(effects: Effects) -> str:
    """`W!R?`: breaking for writers, risky for readers."""
    return "".join(_LETTERS[who] + _MARKS[effects[who]] for who in Audience if who in effects)


def told(comparison: Comparison, *, safe: bool = True) -> list[tuple[str, str, str]]:
    """Kind, field and effects of each change."""
    return [
        (each.kind.id, each.place.field, short(each.effects))
        for each in comparison.changes
        if safe or each.severity is not Impact.SAFE
    ]


def of_field(old: Json, new: Json, *, at: str = "spec") -> list[Change]:
    """The changes when the field `x` below spec or status gets another schema."""
    before, after = (crd(version(schema=obj(**{at: obj(x=each)}))) for each in (old, new))
    return list(compare(before, after).changes)


def changed(change: Callable[[Json], None], base: Json | None = None) -> Comparison:
    """The changes reported for a change of the whole CRD."""
    old = base or crd()
    new = copy.deepcopy(old)
    change(new)
    return compare(old, new)
