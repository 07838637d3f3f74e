"""`in`: whether a list has an equal element, or a map a key (Contains of cel-go's lists and maps)."""

from crdkeeper.apiserver.cel.values.equality import equal_values
from crdkeeper.apiserver.cel.values.values import (
    MISSING,
    EvaluationError,
    ListValue,
    MapValue,
    Value,
    no_overload,
    read,
)


def contains(container: Value, value: Value) -> bool:
    """Whether `value in container`.

    Raises EvaluationError if it is not a container, or if a comparison fails and nothing is found.
    """
    if type(container) is list:
        return in_elements(container, value)
    if isinstance(container, ListValue):
        return container.contains(value)
    if isinstance(container, MapValue):
        found = container.find(value)
        # An entry that does not match its schema is an error even for a mere presence test.
        return found is not MISSING and read(found) is not MISSING
    raise no_overload()


def in_elements(items: list[Value], value: Value) -> bool:
    """Whether an element equals a value, by the value's own rules; incomparable elements do not count."""
    kind = type(value)
    if kind is str or kind is bool or kind is bytes:
        return any(type(each) is kind and each == value for each in items)
    for each in items:
        try:
            if equal_values(value, read(each)):
                return True
        except EvaluationError:
            continue
    return False
