"""Values formatted with Go's verb %v, as in messages of CEL."""

from crdkeeper.apiserver.cel.values.values import Indeterminate, Uint, Value, type_name
from crdkeeper.apiserver.golang.numbers import shortest


def displayed(value: Value) -> str:
    """A scalar formatted with %v. Raises Indeterminate for values whose text depends on Go's types."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return shortest(value)
    if value is None:
        return "NULL_VALUE"
    raise Indeterminate(f"the text of a {type_name(value)} in an error message")
