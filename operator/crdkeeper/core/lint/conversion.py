"""spec.conversion: what the conversion between versions loses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from crdkeeper.apiserver.definitions.versionorder import preferred
from crdkeeper.apiserver.schema.props import EMBEDDED, INT_OR_STRING, PRESERVE
from crdkeeper.core.lint.checkeddefinition import CheckedDefinition
from crdkeeper.core.lint.conventions.definition import CONVERSION_CA, CONVERSION_LOSS
from crdkeeper.core.lint.found import Findings
from crdkeeper.core.lint.place import SchemaPlace, root_place
from crdkeeper.core.lint.severity import Severity

_INJECTED = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-apiserver-ca", "inject-cabundle")
_GENERATED = "controller-gen.kubebuilder.io/version"
_NUMERIC = frozenset(("integer", "number"))
_ROOT_ONLY = frozenset(("apiVersion", "kind", "metadata"))


def check_conversion(definition: CheckedDefinition, found: Findings) -> None:
    """Report fields that one version has and another lacks, and a webhook that cannot be trusted."""
    conversion = definition.spec.get("conversion") or {}
    # The CRD is in a cluster: nothing will add a webhook to it.
    live = definition.manifest is None
    if conversion.get("strategy", "None") == "None":
        generated = _GENERATED in (definition.metadata.get("annotations") or {})
        _check_none(definition.versions, found, final=live or bool(conversion), generated=generated)
        return
    client = (conversion.get("webhook") or {}).get("clientConfig") or {}
    annotations = definition.metadata.get("annotations") or {}
    injected = any(key.startswith(_INJECTED[:2]) or key.endswith(_INJECTED[2]) for key in annotations)
    if "service" in client and not client.get("caBundle") and (live or not injected):
        steps = ("spec", "conversion", "webhook", "clientConfig")
        message = "no authority is trusted to sign the webhook's certificate"
        severity = Severity.WARNING if live else None
        found.add(CONVERSION_CA, ".".join(steps), steps, message, severity=severity)


def _check_none(
    versions: Sequence[Mapping[str, Any]], found: Findings, *, final: bool, generated: bool
) -> None:
    stored = next((i for i, each in enumerate(versions) if each.get("storage")), None)
    if stored is None:
        return
    base = _root(versions, stored)
    default = preferred((each.get("name") or "" for each in versions if each.get("served")), str)
    for i, version in enumerate(versions):
        if i == stored or not version.get("served"):
            continue
        other = _root(versions, i)
        if base is None or other is None or base.schema == other.schema:
            continue
        differences = _differences(base, other)
        names = versions[stored].get("name") or "", version.get("name") or ""
        # Versions that differ in both directions need a webhook. Generators of CRDs write none: another tool
        # adds it. Versions that differ in one direction look like an oversight, and so does another type
        # unless a generator has certainly written the file.
        both_ways = len({each.kind for each in differences}) > 1
        awaited = not final and (both_ways or (generated and any(map(_is_foreign, differences))))
        for each in differences:
            message = _MESSAGES[each.kind].format(stored=names[0], served=names[1], types=each.types)
            known = _is_known(each.kind, versions[stored], version, default=names[1] == default)
            severity = Severity.INFO if awaited or known else None
            each.place.report(found, CONVERSION_LOSS, message, severity=severity)


def _is_known(kind: "_Kind", stored: Mapping[str, Any], served: Mapping[str, Any], *, default: bool) -> bool:
    """Whether the loss is expected.

    It is where a deprecated version lacks or alone has the field, where none serves it, and where the version
    that lacks it is not the one for clients that name none: an older one, kept for those that know only it.
    """
    if served.get("deprecated"):
        return True
    return kind is _Kind.LOST and bool(stored.get("deprecated") or not stored.get("served") or not default)


class _Kind(Enum):
    """What a conversion does to a field."""

    NEVER_STORED = 0
    LOST = 1
    RETYPED = 2


_MESSAGES = {
    _Kind.NEVER_STORED: "is never stored: the storage version {stored} lacks it",
    _Kind.LOST: "is lost when an object is replaced through {served}, which lacks it",
    _Kind.RETYPED: "is {types[1]} here and {types[0]} in {stored}",
}


@dataclass(frozen=True, slots=True)
class _Difference:
    place: SchemaPlace
    kind: _Kind
    types: tuple[str, str] = ("", "")


def _is_foreign(difference: _Difference) -> bool:
    """Whether no value of the field is valid in both versions."""
    return difference.kind is _Kind.RETYPED and not _NUMERIC.issuperset(difference.types)


def _root(versions: Sequence[Mapping[str, Any]], i: int) -> SchemaPlace | None:
    schema = (versions[i].get("schema") or {}).get("openAPIV3Schema")
    return root_place(versions[i].get("name") or "", i, schema) if isinstance(schema, dict) else None


def _differences(stored: SchemaPlace, served: SchemaPlace) -> list[_Difference]:
    """The fields that only one of two versions keeps."""
    found: list[_Difference] = []
    pending = [(stored, served)]
    while pending:
        one, other = pending.pop()
        if one.schema == other.schema or _is_open(one) or _is_open(other):
            continue
        types = one.schema.get("type") or "of any type", other.schema.get("type") or "of any type"
        if types[0] != types[1]:
            if one.schema.get(INT_OR_STRING) is other.schema.get(INT_OR_STRING):
                found.append(_Difference(other, _Kind.RETYPED, types))
            continue
        found += [_Difference(each, _Kind.NEVER_STORED) for each in _only_in(other, one)]
        found += [_Difference(each, _Kind.LOST) for each in _only_in(one, other)]
        for name, schema in (one.schema.get("properties") or {}).items():
            if schema and not (one.parent is None and name in _ROOT_ONLY):
                _push(pending, one.child(name), other.child(name))
        _push(pending, one.items(), other.items())
        _push(pending, one.values(), other.values())
    return found


def _push(
    pending: list[tuple[SchemaPlace, SchemaPlace]], one: SchemaPlace | None, other: SchemaPlace | None
) -> None:
    if one is not None and other is not None:
        pending.append((one, other))


def _only_in(owner: SchemaPlace, lacking: SchemaPlace) -> list[SchemaPlace]:
    if lacking.schema.get("additionalProperties"):
        return []
    known = lacking.schema.get("properties") or {}
    extra = [owner.child(name) for name in owner.schema.get("properties") or {} if name not in known]
    return [each for each in extra if each is not None]


def _is_open(place: SchemaPlace) -> bool:
    return bool(place.schema.get(PRESERVE) or place.schema.get(EMBEDDED))
