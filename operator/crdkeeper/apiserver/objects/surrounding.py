"""The smallest object with a value at a place: defaults are pruned, and inside metadata validated, in it."""

from typing import Any

from crdkeeper.apiserver.objects.objectmeta import coerce
from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.prune import pruned
from crdkeeper.apiserver.schema.props import Schema

_TYPE_META = {"apiVersion": "validation/v1", "kind": "Validation"}


class Surrounding:
    """A place in the objects of one schema, given by the steps that lead there."""

    __slots__ = ("_compiled", "_schema", "_steps", "_type_meta")

    def __init__(self, schema: Schema, node: ObjectNode | None = None, *, type_meta: bool = False) -> None:
        """The object itself; `type_meta` adds a missing apiVersion and kind. See `node`."""
        self._schema = schema
        self._type_meta = type_meta
        self._steps: tuple[str | int, ...] = ()
        self._compiled: list[ObjectNode] = [] if node is None else [node]

    def child(self, name: str) -> "Surrounding":
        """A field of it."""
        return self._below(name)

    def index(self) -> "Surrounding":
        """An item of it."""
        return self._below(0)

    def _below(self, step: str | int) -> "Surrounding":
        found = Surrounding(self._schema, type_meta=self._type_meta)
        found._steps = (*self._steps, step)
        found._compiled = self._compiled
        return found

    @property
    def is_root(self) -> bool:
        """Whether this is the object itself."""
        return not self._steps

    @property
    def node(self) -> ObjectNode:
        """The object's schema, as that of a resource."""
        if not self._compiled:
            self._compiled.append(ObjectNode(self._schema, embedded=True))
        return self._compiled[0]

    def built(self, value: Any) -> Any:
        """The object with the value in its place."""
        for step in reversed(self._steps):
            value = [value] if isinstance(step, int) else {step: value}
        return {**_TYPE_META, **value} if self._type_meta else value

    def found(self, whole: Any) -> Any:
        """The value at the place; None if there is none."""
        for step in self._steps:
            if isinstance(step, int):
                whole = whole[0] if isinstance(whole, list) and whole else None
            else:
                whole = whole.get(step) if isinstance(whole, dict) else None
        return whole

    def kept(self, default: Any) -> Any:
        """What PruneDefaults keeps of a default for the place, which may be changed; None if it is all gone.

        The metadata of an embedded resource is not pruned, but keeps only the fields of ObjectMeta. Raises
        UndecidedValue.
        """
        whole = self.built(default)
        coerce(whole, self.node, lenient=True)
        return self.found(pruned(whole, self.node, nulls=False, listed=False)[0])
