"""Parts of schemas that are the same to the letter, found fast: most of two releases of a CRD is."""

from typing import Any, Final

import orjson

from crdkeeper.core.compatibility.findings import Changes

_BYTES_PER_STEP: Final = 4_000


def same(one: Any, other: Any, findings: Changes) -> bool:
    """Whether two parts are certainly the same; those in another order may be, and are not found so.

    Raises Exhausted.
    """
    if one is other:
        return True
    left, right = _written(one), _written(other)
    findings.spend((len(left) + len(right)) // _BYTES_PER_STEP)
    return left == right and left != b""


def size(schema: Any) -> int:
    """Of a schema, in bytes as JSON; 0 where it nests too deep to be measured."""
    return len(_written(schema))


def _written(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # it nests deeper than 254 levels, or has an integer beyond 64 bits
        return b""
