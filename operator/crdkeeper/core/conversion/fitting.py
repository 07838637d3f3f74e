"""Whether a value from an annotation matches the schema of its version at its place.

The API server validates what is written at the version of the request, and never the result of a conversion:
nothing else checks what is restored. CEL rules are left out. They compare fields, so an honest edit of one
field can violate them for another.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from crdkeeper.apiserver.dnsnames import value_errors
from crdkeeper.apiserver.objects.defaulting import fill
from crdkeeper.apiserver.objects.effort import StepAllowance, limited
from crdkeeper.apiserver.objects.listtypes import check_list_types
from crdkeeper.apiserver.objects.objectmeta import coerce, unknown_in_embedded
from crdkeeper.apiserver.objects.objectmetarules import check_embedded
from crdkeeper.apiserver.objects.objectnode import ObjectNode, copied
from crdkeeper.apiserver.objects.prune import pruned
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.finding import INVALID, MOST_FINDINGS, FieldError, UndecidedValue
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.fieldpaths import ABSENT, Steps
from crdkeeper.core.conversion.keptaside import Entry, named
from crdkeeper.core.conversion.notes import is_note
from crdkeeper.core.conversion.places import Place
from crdkeeper.core.conversion.restoring import FREE

STEPS: Final = 200_000_000
"""For one arriving object: two seconds with a malicious schema. The rest is not restored."""
_METADATA: Final = ("annotations", "labels")


class Violated(NamedTuple):
    """A violation, reduced to what makes it the same one in two objects."""

    place: Place
    kind: str
    detail: str
    mistyped: bool
    """The value has the wrong type: it can never have been written at this version."""


class Fitting:
    """The schema of a version, compiled when the first object with values kept aside arrives there."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @cached_property
    def node(self) -> ObjectNode:
        """The schema as a tree, without metadata."""
        made = ObjectNode(self.schema)
        made.properties["metadata"] = FREE
        return made

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.schema)

    def knows(self, value: Any, node: ObjectNode) -> bool:
        """Whether nothing in a value at that node would be pruned as unknown, or fail to decode."""
        try:
            left, unknown = pruned(value, node)
            return not unknown and not any(unknown_in_embedded(left, node)) and not coerce(copied(left), node)
        except (UndecidedValue, RecursionError):
            return False

    def violations(self, value: Any, allowance: StepAllowance | None = None) -> frozenset[Violated] | None:
        """All violations in an object, by place; None if they are too many, or take too long."""
        try:
            with limited(allowance or StepAllowance(STEPS)):
                if self.node.has_defaults:
                    # The API server applies defaults before it validates.
                    value = copied(value)
                    fill(value, self.node)
                found = [*self._validator.check(value), *check_embedded(value, self.node)]
                found += check_list_types(value, self.node)
        except (UndecidedValue, RecursionError):
            return None
        if len(found) >= MOST_FINDINGS:
            return None
        names: dict[int, Sequence[bytes] | None] = {}
        return frozenset(self._violated(each, value, names) for each in found)

    def _violated(
        self, finding: FieldError, value: Any, names: dict[int, Sequence[bytes] | None]
    ) -> Violated:
        mistyped = finding.blocking and finding.kind == INVALID
        return Violated(self._place(finding, value, names), finding.kind, finding.detail, mistyped)

    def _place(self, finding: FieldError, value: Any, names: dict[int, Sequence[bytes] | None]) -> Place:
        """The place of a finding, with the keys of list-type maps' items; `names` has them by a list's id."""
        place: list[str | int | bytes | None] = []
        node: ObjectNode | None = self.node
        for _, step in reversed(finding.steps):
            if isinstance(step, int) and isinstance(value, list):
                if id(value) not in names:
                    found = named(value, node.map_keys) if node and node.list_type == "map" else None
                    names[id(value)] = None if found is None else list(found)
                known = names[id(value)]
                place.append(step if known is None else known[step])
                value = value[step]
                node = node.items if node is not None else None
            else:
                place.append(step)
                value = value.get(step) if isinstance(value, dict) else None
                node = node.child(str(step)) if node is not None else None
        return tuple(place)


def may_be_kept(entry: Entry, movable: Iterable[Steps]) -> bool:
    """Whether rules that read or write these annotations and labels could lose what an entry holds.

    No rule can change an object's identity: apiVersion, kind, and the rest of metadata.
    """
    at = entry["at"]
    if at[0] in ("apiVersion", "kind"):
        return False
    if at[0] != "metadata":
        return True
    if len(at) != 3 or tuple(at) not in movable or at[1] not in _METADATA or is_note(at[2]):
        return False
    was = entry.get("was", ABSENT)
    return was is ABSENT or (isinstance(was, str) and not (at[1] == "labels" and value_errors(was)))
