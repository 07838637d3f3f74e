"""What the webhook gets of a VersionConversion: the rules, and the schemas that they were verified with.

A self-contained file, so that the webhook reads neither CRDs nor unverified rules.
"""

import gzip
import zlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson
from pydantic import ValidationError

from crdkeeper.api.texts import described
from crdkeeper.api.versionconversion import VersionConversionSpec
from crdkeeper.apiserver.schema.props import Schema

RULES_HEADER: Final = "X-Crdkeeper-Rules"
"""Header of the webhook's answers: the digest of the rules that made them."""
MAX_BYTES: Final = 1000 * 1024
"""A ConfigMap can hold 1 MiB."""
_UNPACKED_BYTES: Final = 64 << 20
_GZIP: Final = 31
_FOR_PEOPLE: Final = ("description", "example", "externalDocs", "title", "x-kubernetes-validations")


class BadBundle(ValueError):
    """Something is not a bundle, or too large for one."""


class Bundle(NamedTuple):
    """The input of the webhook's conversions."""

    spec: VersionConversionSpec
    schemas: dict[str, Schema]


def packed(spec: VersionConversionSpec, schemas: Mapping[str, Schema]) -> bytes:
    """Pack rules and schemas into a bundle; equal input gives equal bytes.

    Raises BadBundle if it is too large.
    """
    rules = VersionConversionSpec(resource=spec.resource, hub=spec.hub, spokes=spec.spokes)
    content = {
        "rules": rules.to_object(),
        "schemas": {version: _bare(schema) for version, schema in schemas.items()},
    }
    found = gzip.compress(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), mtime=0)
    if len(found) > MAX_BYTES:
        raise BadBundle(f"rules and schemas are {len(found):,} bytes packed; {MAX_BYTES:,} at most can be")
    return found


def unpacked(content: bytes) -> Bundle:
    """The content of a bundle. Raises BadBundle."""
    try:
        reader = zlib.decompressobj(_GZIP)
        found = orjson.loads(reader.decompress(content, _UNPACKED_BYTES))
        spec = VersionConversionSpec.model_validate(found["rules"])
        return Bundle(spec, dict(found["schemas"]))
    except ValidationError as error:
        raise BadBundle(f"cannot be read: {described(error)}") from None
    except (zlib.error, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise BadBundle(f"cannot be read: {' '.join(str(error).split())}") from None


def digest(content: bytes) -> str:
    """Identifies a bundle."""
    return sha256(content).hexdigest()[:32]


def _bare(schema: Any) -> Any:
    """A schema without what only people and validation read; a field may be called `title`, too."""
    if not isinstance(schema, Mapping):
        return schema
    bare: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "properties" and isinstance(value, Mapping):
            bare[keyword] = {name: _bare(each) for name, each in value.items()}
        elif keyword in ("items", "additionalProperties"):
            bare[keyword] = _bare(value)
        elif keyword not in _FOR_PEOPLE:
            bare[keyword] = value
    return bare
