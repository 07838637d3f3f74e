"""What a field shows if the value from which it is converted has no counterpart.

An object that is valid by its schema can contain such a value (a string that is not a quantity). If that were
an error, one object would make every list at the other version fail. So the field remains unset there, or
shows a value that its schema allows; converting back would give another value, so the original is kept aside
like anything else that the other version cannot hold.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from crdkeeper.apiserver.dnsnames import value_errors
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.core.conversion.fieldpaths import ABSENT, Steps, put, show
from crdkeeper.core.conversion.samples import least
from crdkeeper.core.conversion.samplevalues import candidates
from crdkeeper.core.conversion.values import NOTHING, Convert, Refused, Unconvertible, kind_of

REFUSED: Final = object()
"""Replaces a stand-in where requests for the object fail."""


class _Met(threading.local):
    number = 0


_met = _Met()


def met() -> int:
    """How many stand-ins this thread has put into objects so far."""
    return _met.number


def settle(made: dict[str, Any], targets: Mapping[Steps, Any], at: Steps, error: Unconvertible) -> None:
    """Put stand-ins into `made` for the value at `at`, which has no counterpart.

    Raises Refused if one is REFUSED, or if `error` comes from an inner rule that refuses.
    """
    if isinstance(error, Refused) or any(each is REFUSED for each in targets.values()):
        raise Refused(f"{show(at)}: {error}") from None
    count_one()
    for steps, value in targets.items():
        if value is not ABSENT:
            put(made, steps, value)


def count_one() -> None:
    """Count a value that has no counterpart and was left out."""
    _met.number += 1


def stand_in(schema: Schema, reverse: Convert | None, *, required: bool) -> Any:
    """What a field with this schema shows; ABSENT for nothing.

    Its default, which the API server would set anyway; else nothing if it is optional; else a value that
    `reverse`, the way back, can read, so that the object can be written unchanged.
    """
    if "default" in schema:
        return schema["default"]
    if not required:
        return ABSENT
    if schema.get("nullable"):
        return None
    if schema.get("type") in ("object", "array"):
        return least(schema)
    found = candidates(schema)
    return next(
        (each for each in found if reverse is None or _converts(reverse, each)), *found[:1] or (ABSENT,)
    )


def _converts(convert: Convert, value: Any) -> bool:
    try:
        convert(value)
    except (Unconvertible, NOTHING):
        return False
    return True


def misfit(value: Any, schema: Schema) -> bool:
    """Whether a schema does not allow a value."""
    try:
        return bool(Validator(schema).check(value))
    except (UndecidedValue, RecursionError):
        return False


def for_metadata(steps: Steps, convert: Callable[..., Any]) -> Callable[..., Any]:
    """`convert` for the annotation or label at `steps`: the API server rejects answers with bad values."""
    is_label = steps[1] == "labels"

    def converted(*values: Any) -> Any:
        made = convert(*values)
        if not isinstance(made, str):
            raise Unconvertible(f"{kind_of(made)}, and annotations and labels are strings")
        if is_label and value_errors(made):
            raise Unconvertible("a string that no label can have")
        return made

    return converted
