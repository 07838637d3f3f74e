"""The size of a CRD, for which clients and etcd have limits."""

import json
from collections.abc import Mapping
from typing import Any

import orjson

from crdkeeper.core.lint.checkeddefinition import CheckedDefinition
from crdkeeper.core.lint.conventions.definition import APPLY_SIZE, DEFINITION_SIZE
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace, root_place

_ANNOTATIONS = 256 << 10
"""TotalAnnotationSizeLimitB of k8s.io/apimachinery/pkg/api/validation."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_REQUEST = 1536 << 10
"""etcd's --max-request-bytes by default."""
_NEAR = 0.8


def check_size(definition: CheckedDefinition, found: Findings) -> None:
    """Report a CRD that kubectl apply cannot annotate, or that etcd soon cannot store."""
    crd = definition.manifest
    if crd is None:
        return
    size = _size({key: value for key, value in crd.items() if key != "status"})
    if size > _NEAR * _REQUEST:
        message = f"is {_kib(size)} as JSON: {size / _REQUEST:.0%} of what etcd takes"
        found.add(DEFINITION_SIZE, "spec", ("spec",), message)
    if _annotated(crd, size) > _ANNOTATIONS:
        message = f"is {_kib(size)} as JSON, too much for `kubectl apply`{_biggest(crd, size)}"
        found.add(APPLY_SIZE, "spec", ("spec",), message)


def _annotated(crd: Mapping[str, Any], size: int) -> int:
    """The bytes of all annotations once kubectl apply has added its own (GetModifiedConfiguration).

    It encodes the object with its annotations, even if there are none, and a line break at the end.
    """
    annotations = (crd.get("metadata") or {}).get("annotations") or {}
    own = sum(len(f"{key}{value}".encode()) for key, value in annotations.items() if key != _LAST_APPLIED)
    return own + size + len(_LAST_APPLIED) + 1 + (0 if annotations else len('"annotations":{},'))


def _size(value: Any) -> int:
    """The size of Go's encoding, which writes three characters as six each."""
    try:
        written = orjson.dumps(value)
    except orjson.JSONEncodeError:
        # It has limits of its own: on depth, and on integers.
        written = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
    return len(written) + 5 * sum(written.count(each) for each in (b"<", b">", b"&"))


def _kib(size: int) -> str:
    return f"{size / 1024:,.0f} KiB"


def _biggest(crd: Mapping[str, Any], total: int) -> str:
    """The largest part: the deepest field below spec that contains at least a quarter."""
    found: tuple[int, str] | None = None
    for i, version in enumerate((crd.get("spec") or {}).get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not isinstance(schema, dict):
            continue
        at: SchemaPlace | None = root_place(version.get("name") or "", i, schema)
        while at is not None:
            below = [each for each in map(at.child, at.schema.get("properties") or {}) if each is not None]
            below += [each for each in (at.items(), at.values()) if each is not None]
            sized = [(_size(each.schema), each) for each in below]
            size, at = max(sized, key=lambda pair: pair[0], default=(0, None))
            if at is None or size * 4 < total:
                break
            if at.name and at.name != at.area:
                found = (size, at.field) if found is None or size * 2 > found[0] else found
    return f"; {found[1]} alone has {found[0] / total:.0%}" if found else ""
