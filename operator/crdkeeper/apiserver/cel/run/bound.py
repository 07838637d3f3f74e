"""Objects and lists of a custom resource, seen by CEL through their schema.

Elements are converted on first access and then kept. Follows k8s.io/apiserver
pkg/cel/common/valuesunstructured.go; a list of type set is compared and added as a set, one of type map by
its keys.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from crdkeeper.apiserver.cel.syntax.names import unescape
from crdkeeper.apiserver.cel.values.equality import equal_values
from crdkeeper.apiserver.cel.values.membership import in_elements
from crdkeeper.apiserver.cel.values.times import Timestamp
from crdkeeper.apiserver.cel.values.unordered import Unordered
from crdkeeper.apiserver.cel.values.values import (
    ERRORS,
    MISSING,
    EvaluationError,
    Indeterminate,
    ListValue,
    MapValue,
    Opaque,
    Value,
    elements_of,
    is_list,
    no_overload,
    read,
)

Convert: TypeAlias = Callable[[Any], Value]
"""Converts data to a CEL value; returns an EvaluationError or Indeterminate if it has none."""


class OfData:
    """A value that is made of data, which knows how many they are."""

    __slots__ = ("_weight", "data")
    data: Any
    _weight: int | None

    @property
    def weight(self) -> int:
        """How many values the data are, with all that is in them; counted once."""
        if self._weight is None:
            found, waiting = 0, [self.data]
            while waiting:
                each = waiting.pop()
                found += 1
                if type(each) is dict:
                    waiting += each.values()
                elif type(each) is list:
                    waiting += each
            self._weight = found
        return self._weight


class BoundMap(OfData, MapValue):
    """An object with properties, or a map.

    `convert` finds the conversion of a field's data by the field's name in the schema; None for a field that
    CEL cannot see. `shown` are the names in CEL of an object's fields; None for a map.
    """

    __slots__ = ("_convert", "_found", "_shown")

    def __init__(
        self,
        data: dict[str, Any],
        convert: Callable[[str], Convert | None],
        shown: Mapping[str, str] | None,
    ) -> None:
        self.data = data
        self._convert = convert
        self._shown = shown
        self._found: dict[str, Value] = {}
        self._weight = None

    def find(self, key: Value) -> Value:
        """The value of a field. A null in an object counts as absent."""
        if type(key) is not str:
            raise no_overload()
        value = self._found.get(key, self)
        if value is self:
            value = self._found[key] = self._converted(key)
        return value

    def _converted(self, key: str) -> Value:
        name: str | None = key
        if self._shown is not None:
            name = unescape(key)
        if name is None or name not in self.data:
            return MISSING
        data = self.data[name]
        if data is None and self._shown is not None:
            return MISSING
        convert = self._convert(name)
        return MISSING if convert is None else convert(data)

    def key_list(self) -> list[Value]:
        """The names of the fields that CEL sees."""
        shown = self._shown
        return [
            name if shown is None else shown.get(name, name)
            for name in self.data
            if self._convert(name) is not None
        ]

    def equals(self, other: Value) -> bool:
        """Field by field; fields that CEL does not see are compared as data."""
        if not isinstance(other, MapValue):
            raise no_overload()
        if len(self) != len(other):
            return False
        # The server compares in random order, and stops at the first difference or error.
        differs, failed = False, None
        for name in self.data:
            try:
                differs = not self._same_field(name, other) or differs
            except EvaluationError as error:
                failed = failed or error
        if failed is not None:
            raise Indeterminate("data that do not fit the schema") if differs else failed
        return not differs

    def _same_field(self, name: str, other: MapValue) -> bool:
        if self._convert(name) is None:
            if not isinstance(other, BoundMap):
                raise no_overload()
            return name not in other.data or same_data(self.data[name], other.data[name])
        value, against = self.find(name), other.find(name)
        if value is MISSING or against is MISSING:
            return value is against
        return equal_values(read(value), against)

    def __len__(self) -> int:
        return len(self.data)


def same_data(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; 1 and 1.0 differ."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return one.keys() == other.keys() and all(same_data(one[key], other[key]) for key in one)
    if type(one) is list:
        return len(one) == len(other) and all(map(same_data, one, other))
    return bool(one == other)


class UnseenData(Opaque):
    """Data of unknown type, which can only be compared."""

    __slots__ = ("data",)
    type_name = "unknown"

    def __init__(self, data: Any) -> None:
        self.data = data

    def equals(self, other: Value) -> bool:
        """Whether it is the same data."""
        return type(other) is UnseenData and same_data(self.data, other.data)


class BoundList(OfData, ListValue):
    """A list; atomic, unless a subclass says otherwise."""

    __slots__ = ("_convert", "_elements", "zero")

    def __init__(self, data: list[Any], convert: Convert, zero: Value) -> None:
        self.data = data
        self.zero = zero
        """The sum of an empty list; MISSING for elements that cannot be added."""
        self._convert = convert
        self._elements: list[Value] | None = None
        self._weight = None

    def elements(self) -> list[Value]:
        """The elements, converted."""
        if self._elements is None:
            self._elements = list(map(self._convert, self.data))
        return self._elements

    def equals(self, other: Value) -> bool:
        """Element by element."""
        if not is_list(other):
            raise no_overload()
        if type(other) is Unordered:
            return other.matches(self)
        elements, others = self.elements(), elements_of(other)
        if len(elements) != len(others):
            return False
        return all(equal_values(read(one), two) for one, two in zip(elements, others, strict=True))

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value; an error counts if nothing is found."""
        failed: EvaluationError | None = None
        for each in self.elements():
            try:
                if equal_values(read(each), value):
                    return True
            except EvaluationError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return False

    def plus(self, other: Sequence[Value]) -> Value:
        """All elements of both."""
        return [*self.elements(), *other]


class BoundSet(BoundList):
    """A list of type set."""

    __slots__ = ()

    def equals(self, other: Value) -> bool:
        """Whether both have the same elements, in any order."""
        return _same_sets(self.elements(), other)

    def plus(self, other: Sequence[Value]) -> Value:
        """The union."""
        return Union(_union(self.elements(), other))


class Union(ListValue):
    """The result of adding to a list of type set."""

    __slots__ = ("_elements",)

    def __init__(self, elements: list[Value]) -> None:
        self._elements = elements

    def elements(self) -> list[Value]:
        return self._elements

    def equals(self, other: Value) -> bool:
        """Whether both have the same elements, in any order."""
        return _same_sets(self._elements, other)

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value."""
        return in_elements(self._elements, value)

    def plus(self, other: Sequence[Value]) -> Value:
        """The union."""
        return Union(_union(self._elements, other))


def _set_key(element: Value) -> Any:
    if isinstance(element, EvaluationError):
        return object()  # Go compares the pointers of errors, which it creates while iterating over a list
    element = read(element)
    if is_list(element) or isinstance(element, MapValue):
        raise EvaluationError("listSet operations are only supported on lists of scalar values")
    return _scalar_key(element)


def _scalar_key(element: Value) -> Any:
    if type(element) is Timestamp:
        # Go compares the pointers of time zones. It shares those of whole hours, with another for +00:00 than
        # for Z, which a computed time does not tell apart.
        if element.offset:
            known = element.offset % 3600 == 0 and -12 <= element.offset // 3600 <= 14
        else:
            known = element.written is not None and not element.written.endswith("00:00")
        if not known:
            raise Indeterminate("timestamps with unusual time zones in a set")
        return Timestamp, element.order, element.offset
    if isinstance(element, Opaque):
        return type(element), getattr(element, "order", id(element))
    return type(element), element


def _same_sets(elements: list[Value], other: Value) -> bool:
    if not is_list(other):
        raise no_overload()
    others = elements_of(other)
    if len(elements) != len(others):
        return False
    keys = set(map(_set_key, elements))
    seen = set()
    for each in others:
        key = _set_key(each)
        if key not in keys:
            return False
        seen.add(key)
    return len(seen) == len(keys)


def _union(elements: list[Value], others: Sequence[Value]) -> list[Value]:
    union = list(elements)
    keys = set(map(_set_key, elements))
    for each in others:
        key = _set_key(each)
        if key not in keys:
            keys.add(key)
            union.append(each)
    return union


class BoundMapList(BoundList):
    """A list of type map; `names` are those of its keys in CEL."""

    __slots__ = ("_names",)

    def __init__(self, data: list[Any], convert: Convert, names: tuple[str, ...]) -> None:
        super().__init__(data, convert, MISSING)
        self._names = names

    def _data_key(self, data: Any) -> Any:
        # The server looks up the escaped names in the data itself.
        if type(data) is not dict:
            return object()
        return tuple((type(data.get(name)), data.get(name)) for name in self._names)

    def equals(self, other: Value) -> bool:
        """Whether each key leads to equal elements, in any order."""
        if not is_list(other):
            raise no_overload()
        others = elements_of(other)
        if len(self.data) != len(others):
            return False
        by_key = {self._data_key(each): at for at, each in enumerate(self.data)}
        seen = set()
        for each in others:
            element = read(each)
            key = self._data_key(element.data if isinstance(element, BoundMap) else None)
            at = by_key.get(key)
            if at is None:
                return False
            if not equal_values(read(self.elements()[at]), element):
                return False
            seen.add(key)
        return len(seen) == len(by_key)

    def plus(self, other: Sequence[Value]) -> Value:
        """The elements of both; of two with the same keys, the later one replaces the former."""
        return MergedMapList(self.elements(), self._names).plus(other)


class MergedMapList(ListValue):
    """The result of adding to a list of type map."""

    __slots__ = ("_elements", "_names")
    replaces = True

    def __init__(self, elements: list[Value], names: tuple[str, ...]) -> None:
        self._elements = elements
        self._names = names

    def elements(self) -> list[Value]:
        return self._elements

    def _key(self, element: Value) -> Any:
        return tuple(map(self._part, [element] * len(self._names), self._names))

    def _part(self, element: Value, name: str) -> Any:
        if not isinstance(element, MapValue):
            return None
        value = element.find(name)
        return None if value is MISSING or type(value) in ERRORS else _scalar_key(value)

    def equals(self, other: Value) -> bool:
        """Whether each key leads to equal elements, in any order."""
        if not is_list(other):
            raise no_overload()
        others = elements_of(other)
        if len(self._elements) != len(others):
            return False
        by_key = {self._key(each): each for each in self._elements}
        seen = set()
        for each in others:
            key = self._key(each)
            if key not in by_key:
                return False
            if not equal_values(read(by_key[key]), each):
                return False
            seen.add(key)
        return len(seen) == len(by_key)

    def contains(self, value: Value) -> bool:
        """Whether an element equals a value."""
        return in_elements(self._elements, value)

    def plus(self, other: Sequence[Value]) -> Value:
        """The elements of both; of two with the same keys, the later one replaces the former."""
        merged = list(self._elements)
        places = {self._key(each): at for at, each in enumerate(merged)}
        count = len(merged)
        for each in other:
            at = places.get(self._key(each), count)
            if at < count:
                merged[at] = each
            else:
                merged.append(each)
        return MergedMapList(merged, self._names)
