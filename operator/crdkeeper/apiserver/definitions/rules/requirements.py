"""Which of its rules the API server applies to a CRD: all on creation, fewer on update.

A rule newer than a stored CRD does not block its updates: what the old CRD already violates, the new one may
violate, too (`ValidateCustomResourceDefinitionUpdate` in k8s.io/apiextensions-apiserver). The server decides
this once for the whole CRD, not field by field.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.rules.cabundle import UndecidedBundle, ca_bundle_error
from crdkeeper.apiserver.definitions.rules.defaults import has_unpruned_defaults
from crdkeeper.apiserver.definitions.rules.internalform import Decoded, Spec, same_validation
from crdkeeper.apiserver.definitions.rules.lists import check_key_nulls
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    TYPES,
    VALIDATIONS,
    Schema,
    subschemas,
)
from crdkeeper.apiserver.schema.structural import conversion_error, violations
from crdkeeper.apiserver.schema.violation import Report

MAX_SELECTABLE = 8
REVIEW_VERSIONS = frozenset(("v1", "v1beta1"))


@dataclass(frozen=True, slots=True)
class Requirements:
    """The rules that do not apply to every CRD; by default all of them."""

    schemas: bool = True
    """Every version has a schema."""
    structural: bool = True
    types: bool = True
    """Each `type` is one of OpenAPI v3."""
    pruned_defaults: bool = True
    atomic_set_items: bool = True
    map_keys: bool = True
    """The keys of map lists are required; items of sets and map lists are not null."""
    review_version: bool = True
    """The server supports one of conversionReviewVersions."""
    ca_bundle: bool | None = False
    """The CA bundle of a conversion webhook is readable. Not before the CRD is established; None if it is
    unknown whether the old bundle was valid.
    """
    not_preserving: bool = True
    """spec.preserveUnknownFields is false."""
    unchanged_schemas: frozenset[str] = frozenset()
    """Versions whose expressions have no individual cost limit, only that of the whole CRD."""
    many_selectable_fields: frozenset[str] = frozenset()
    """Versions that already had too many selectable fields; an empty name for those that all share."""
    old_expressions: frozenset[str] = frozenset()
    """Rules that may use features unknown to servers of the last release."""
    old_message_expressions: frozenset[str] = frozenset()


CREATION = Requirements()


def update_requirements(new: Spec, old: Spec, *, established: bool) -> Requirements:
    """The rules for an update; `established` is the old CRD's condition."""
    rules = [rule for schema in old.schemas for node in _nodes(schema) for rule in node.get(VALIDATIONS, ())]
    return Requirements(
        schemas=old.shared.schema is not None or all(part.schema is not None for part in old.own),
        structural=all(_is_structural(schema) for schema in old.schemas),
        types=not _any_node(old, _has_other_type),
        pruned_defaults=not any(map(has_unpruned_defaults, old.schemas)),
        atomic_set_items=not _any_node(old, _is_set_of_granular),
        map_keys=not _any_node(old, _has_null_keys),
        review_version=_knows_review_version(old.spec),
        ca_bundle=established and _needs_ca_bundle(new.spec, old.spec),
        not_preserving=not old.spec.get("preserveUnknownFields"),
        unchanged_schemas=_unchanged_schemas(new, old),
        many_selectable_fields=_many_selectable_fields(new, old),
        old_expressions=frozenset(rule.get("rule", "") for rule in rules),
        old_message_expressions=frozenset(
            rule["messageExpression"] for rule in rules if "messageExpression" in rule
        ),
    )


def must_be_structural(spec: Spec, requirements: Requirements) -> bool:
    """Whether this CRD's schemas must be structural, which some of its features require in any case."""
    return (
        requirements.structural
        or not spec.spec.get("preserveUnknownFields")
        or _any_node(spec, lambda node: "default" in node or _has_extension(node))
    )


def has_defaults(spec: Spec) -> bool:
    """Whether there is a default anywhere in the schemas."""
    return _any_node(spec, lambda node: "default" in node)


def _nodes(schema: Schema) -> list[Schema]:
    found = [schema]
    for each in found:
        found.extend(subschemas(each))
    return found


def _any_node(spec: Spec, predicate: Callable[[Schema], bool]) -> bool:
    return any(predicate(node) for schema in spec.schemas for node in _nodes(schema))


def _is_structural(schema: Schema) -> bool:
    if conversion_error(schema) is not None:
        return False
    report = Report()
    violations(schema, root("schema"), report)
    return not report.violations


def _has_other_type(node: Schema) -> bool:
    return bool(node.get("type")) and node["type"] not in TYPES


def _has_extension(node: Schema) -> bool:
    flags = (EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, VALIDATIONS)
    return PRESERVE in node or LIST_TYPE in node or any(node.get(each) for each in flags)


def _is_set_of_granular(node: Schema) -> bool:
    items = node.get("items")
    if node.get(LIST_TYPE) != "set" or not isinstance(items, dict):
        return False
    if items.get("type") == "array":
        return bool(items.get(LIST_TYPE, "atomic") != "atomic")
    return items.get("type") == "object" and items.get(MAP_TYPE) != "atomic"


def _has_null_keys(node: Schema) -> bool:
    report = Report()
    check_key_nulls(node, root("schema"), report)
    return bool(report.violations)


def _knows_review_version(spec: Decoded) -> bool:
    versions = spec.get("conversion", {}).get("webhook", {}).get("conversionReviewVersions", [])
    return not versions or not REVIEW_VERSIONS.isdisjoint(versions)


def _needs_ca_bundle(new: Decoded, old: Decoded) -> bool | None:
    """An invalid bundle may replace an old invalid one, and an unchanged one is as valid as before."""
    mine, theirs = _ca_bundle(new), _ca_bundle(old)
    if mine == theirs:
        return False
    if theirs is None:
        return True
    try:
        ca_bundle_error(theirs)
    except UndecidedBundle:
        return None
    return False


def _ca_bundle(spec: Decoded) -> bytes | None:
    webhook: Mapping[str, Any] = spec.get("conversion", {}).get("webhook", {})
    found: bytes | None = webhook.get("clientConfig", {}).get("caBundle")
    return found


def _unchanged_schemas(new: Spec, old: Spec) -> frozenset[str]:
    found: set[str] = set()
    for version in new.versions:
        name = version.get("name", "")
        mine, theirs = _validation(new, name), _validation(old, name)
        if mine and theirs and same_validation(mine[0], theirs[0]):
            found.add(name)
    return frozenset(found)


def _validation(spec: Spec, name: str) -> tuple[Decoded | None] | None:
    """The schema stanza of a version, as a tuple of one; None if there is no such version.

    If all versions share a schema, the server does not check whether the version is one of them.
    """
    if all(part.validation is None for part in spec.own):
        return (spec.shared.validation,)
    for version, part in zip(spec.versions, spec.own, strict=True):
        if version.get("name", "") == name:
            return (part.validation,)
    return None


def _many_selectable_fields(new: Spec, old: Spec) -> frozenset[str]:
    found: set[str] = set()
    pairs = [("", new.shared, old.shared)]
    theirs = {version.get("name", ""): part for version, part in zip(old.versions, old.own, strict=True)}
    for version, part in zip(new.versions, new.own, strict=True):
        name = version.get("name", "")
        if name in theirs:
            pairs.append((name, part, theirs[name]))
    for name, mine, other in pairs:
        if (
            len(other.selectable_fields) > MAX_SELECTABLE
            and mine.selectable_fields == other.selectable_fields
        ):
            found.add(name)
    return frozenset(found)
