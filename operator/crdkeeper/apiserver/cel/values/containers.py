"""Maps created by expressions, and optionals: the values that contain other values of any type."""

from collections.abc import Iterator
from typing import Any, Final

from crdkeeper.apiserver.cel.values.equality import certainly_different, equal_values
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    EvaluationError,
    Indeterminate,
    MapValue,
    Opaque,
    Uint,
    Value,
    type_name,
)
from crdkeeper.apiserver.golang.numbers import MAX_INT, MAX_UINT, MIN_INT


class OptionalValue(Opaque):
    """An optional with a value; the empty one is `NONE`."""

    __slots__ = ("value",)
    type_name = "optional_type"

    def __init__(self, value: Value) -> None:
        self.value = value

    def equals(self, other: Value) -> bool:
        """Optionals are equal if both are empty, or both contain equal values."""
        if type(other) is not OptionalValue or (self is NONE) != (other is NONE):
            return False
        return self is NONE or equal_values(self.value, other.value)

    def dereference(self) -> Value:
        """The value. Raises EvaluationError if there is none."""
        if self is NONE:
            raise EvaluationError("optional.none() dereference")
        return self.value


NONE: Final = OptionalValue(None)


class CelMap(MapValue):
    """A map created by an expression (types.NewRefValMap): keys of any scalar type, numbers across types."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[Any, tuple[Value, Value]] = {}

    @classmethod
    def of_strings(cls, values: dict[str, Value]) -> "CelMap":
        """A map with string keys."""
        made = cls()
        made._entries = {key: (key, value) for key, value in values.items()}
        return made

    def put(self, key: Value, value: Value) -> None:
        """Set an entry; only for the creator of the map."""
        self._entries[hash_key(key)] = (key, value)

    def drop(self, key: Value) -> None:
        """Remove an entry if it exists; only for the creator of the map."""
        self._entries.pop(hash_key(key), None)

    def find(self, key: Value) -> Value:
        """The value at a key; 1, 1u and 1.0 are the same key."""
        entries = self._entries
        if not entries:
            return MISSING
        found = entries.get(hash_key(key))
        if found is not None:
            return found[1]
        for other in _same_number(key):
            found = entries.get(hash_key(other))
            if found is not None:
                return found[1]
        return MISSING

    def key_list(self) -> list[Value]:
        """The keys in the order of insertion (the server's order is random)."""
        return [key for key, _ in self._entries.values()]

    def items(self) -> Iterator[tuple[Value, Value]]:
        """Keys and values."""
        return iter(self._entries.values())

    def equals(self, other: Value) -> bool:
        """Maps are equal if they have equal values at the same keys; an error in between counts as equal."""
        if not isinstance(other, MapValue) or len(self) != len(other):
            return False
        for key, value in self._entries.values():
            against = other.find(key)
            if against is MISSING or certainly_different(value, against):
                return False
        return True

    def __len__(self) -> int:
        return len(self._entries)


def hash_key(key: Value) -> Any:
    """What distinguishes keys in a Go map: type and value.

    Raises Indeterminate for a key type that no map can have.
    """
    kind = type(key)
    if kind is str:
        return key
    if kind is float and key != key:
        raise Indeterminate("NaN as the key of a map")
    if kind in (int, bool, float, Uint) or key is None:
        return kind, key
    raise Indeterminate(f"a key of type {type_name(key)} in a map")


def _same_number(key: Value) -> tuple[Value, ...]:
    kind = type(key)
    if kind is int:
        return (Uint(key),) if key >= 0 else ()
    if kind is Uint:
        return (int(key),) if key <= MAX_INT else ()
    if kind is float and key.is_integer():
        whole = int(key)
        ints = (whole,) if MIN_INT < whole <= MAX_INT else ()
        return ints + ((Uint(whole),) if 0 <= whole <= MAX_UINT else ())
    return ()
