"""A rule of each kind under which a value may have no counterpart, with suitable schemas."""

from typing import Any, Final

from crdkeeper.api.versionconversion import VersionConversionSpec

TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}


def schema_of(fields: dict[str, Any]) -> dict[str, Any]:
    """An object with these fields in its spec."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


def spec_of(rules: Any) -> VersionConversionSpec:
    """One rule, or a list of them, between v1 and v1beta1."""
    return VersionConversionSpec.model_validate(
        {
            "resource": {"group": "example.com", "resource": "things"},
            "hub": "v1",
            "spokes": [{"version": "v1beta1", "rules": rules if isinstance(rules, list) else [rules]}],
        }
    )


def _list(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": inner}}


def _map(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": {"type": "object", "properties": inner}}


BOTH: Final = {"hub": "spec.a", "spoke": "spec.a"}
SIZE: Final = {"hub": "size", "spoke": "size", "quantity": "Mi"}
Kind = tuple[Any, dict[str, Any], dict[str, Any], dict[str, str]]

KINDS: Final[tuple[Kind, ...]] = (
    ({**BOTH, "quantity": "Mi"}, {"a": TEXT}, {"a": WHOLE}, {"v1": "spec.a"}),
    ({**BOTH, "duration": "s"}, {"a": WHOLE}, {"a": TEXT}, {"v1beta1": "spec.a"}),
    ({**BOTH, "cast": True}, {"a": TEXT}, {"a": WHOLE}, {"v1": "spec.a"}),
    ({**BOTH, "cast": True}, {"a": WHOLE}, {"a": FLAG}, {"v1": "spec.a"}),
    (
        {**BOTH, "values": [{"hub": "Large", "spoke": 3}, {"hub": "Small", "spoke": 1}]},
        {"a": TEXT},
        {"a": WHOLE},
        {"v1": "spec.a", "v1beta1": "spec.a"},
    ),
    ({**BOTH, "separator": ","}, {"a": TEXT}, {"a": {"type": "array", "items": WHOLE}}, {"v1": "spec.a"}),
    (
        {
            "spoke": "spec.at",
            "join": {"template": "{host}:{port}", "parts": {"host": "spec.h", "port": "spec.p"}},
        },
        {"h": TEXT, "p": WHOLE},
        {"at": TEXT},
        {"v1beta1": "spec.at"},
    ),
    (
        {**BOTH, "each": [SIZE]},
        {"a": _list({"size": TEXT})},
        {"a": _list({"size": WHOLE})},
        {"v1": "spec.a[*].size"},
    ),
    (
        {**BOTH, "each": [SIZE]},
        {"a": _map({"size": TEXT})},
        {"a": _map({"size": WHOLE})},
        {"v1": "spec.a[*].size"},
    ),
    (
        {**BOTH, "key": "name", "each": [SIZE]},
        {"a": _map({"size": TEXT})},
        {"a": _list({"name": TEXT, "size": WHOLE})},
        {"v1": "spec.a[*].size"},
    ),
    (
        {**BOTH, "wrap": True, "each": [SIZE]},
        {"a": _list({"size": TEXT})},
        {"a": {"type": "object", "properties": {"size": WHOLE}}},
        {"v1": "spec.a[*].size"},
    ),
    (
        [
            {"hub": "spec.n-o[0].size", "spoke": "spec.size", "quantity": "Mi"},
            {"hub": "spec[n-o]", "aside": True},
        ],
        {"n-o": _list({"size": TEXT})},
        {"size": WHOLE},
        {"v1": "spec[n-o][0].size"},
    ),
)

HOSTILE_NAMES: Final = (
    "__a__",
    "__",
    "in",
    "object",
    "namespace",
    "a-b/c.d",
    "a b",
    "a\nb",
    "a\r\n---\nkind: ClusterRoleBinding",
    "\x1b(0evil\x07",
    "\x00",
    "\x7f\x9b",
    "\u202eevil\u2066",
    "'\"`\\",
    '") || true || object.?a.orValue("',
    "${x} {{x}} %s",
    "::error::evil",
    "é😀",
    "x" * 1000,
    "- !!python/object:os.system",
    "0",
)
"""Names of fields that a schema may have."""
