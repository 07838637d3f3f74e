"""Compares a CRD's versions: which exist, are served and are stored, and everything except their schemas."""

import math
from collections.abc import Mapping
from typing import Any

from crdkeeper.apiserver.objects.scalevalidation import MOST_REPLICAS
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.props import Schema, equal
from crdkeeper.apiserver.schema.scalepaths import SCALE_TYPES, SchemaSpot, find
from crdkeeper.core.compatibility import definitionkinds as kinds
from crdkeeper.core.compatibility import schemakinds
from crdkeeper.core.compatibility.change import Audience, ChangeKind, Effects, Impact
from crdkeeper.core.compatibility.counterexamples import Counterexamples
from crdkeeper.core.compatibility.definitions import DecodedVersion, DefinitionPair, FieldsBeside, may_have
from crdkeeper.core.compatibility.node import Teller, TryOut, from_to, nothing_tried
from crdkeeper.core.compatibility.schemas import compare_schemas

_OF_THE_STORED = frozenset((Audience.STORED, Audience.OPERATORS))


def compare_versions(pair: DefinitionPair) -> None:
    """Everything about versions except the differences between them."""
    for old in pair.old.versions.values():
        new = pair.new.versions.get(old.name)
        if new is None:
            _tell_removed(old, pair)
        else:
            _compare_version(old, new, pair)
    for new in pair.new.versions.values():
        if new.name not in pair.old.versions:
            state = "served" if new.served else "not served"
            pair.say(
                kinds.VERSION_ADDED, f"a new version, {state}", "spec.versions", new.path, version=new.name
            )
    if pair.new.serves_none:
        message = "no version is served" + (", as before the change" if pair.old.serves_none else "")
        pair.say(kinds.NONE_SERVED, message, "spec.versions", root("spec").child("versions"))
    _compare_storage(pair)
    _compare_preferred(pair)


def _tell_removed(old: DecodedVersion, pair: DefinitionPair) -> None:
    at = root("spec").child("versions")

    def say(kind: ChangeKind, message: str) -> None:
        pair.say(kind, message, "spec.versions", at, old.path, old.name)

    if old.served:
        say(kinds.VERSION_REMOVED, "a served version is gone")
    if old.name in pair.old.stored or old.storage:
        say(
            kinds.STORED_VERSION_REMOVED,
            f"missing from spec.versions; {old.name} was previously a storage version",
        )
    elif not pair.old.stored:
        say(kinds.VERSION_MAYBE_STORED, f"status.storedVersions may hold {old.name}")
    elif not old.served:
        say(kinds.VERSION_DROPPED, "a version that was neither served nor stored is gone")
    say(kinds.APPLY_OF_REMOVED_VERSION, f"managedFields of objects may name {old.name}")


def _compare_version(old: DecodedVersion, new: DecodedVersion, pair: DefinitionPair) -> None:
    if old.served and not new.served:
        at = new.path.child("served"), old.path.child("served")
        pair.say(kinds.VERSION_NOT_SERVED, "served: true → false", "served", *at, version=new.name)
    elif new.served and not old.served:
        at = new.path.child("served"), old.path.child("served")
        pair.say(kinds.VERSION_SERVED, "served: false → true", "served", *at, version=new.name)
    beside = pair.old.fields_beside(old)
    if old.served and new.served:
        _compare_used(old, new, pair, beside)
        teller = Teller(new.name, pair.findings, elsewhere=beside, try_out=_try_out(old, new, pair))
        _compare_schemas(old, new, teller, pair)
        return
    # Objects are read by the schema of the version that they are stored at.
    stored = old.storage or new.storage or old.name in pair.old.stored
    if stored or not pair.old.stored:
        weigh = _on_stored if stored else _on_perhaps_stored
        teller = Teller(new.name, pair.findings, weigh, beside, _try_out(old, new, pair))
        _compare_schemas(old, new, teller, pair)


def _on_stored(effects: Effects) -> Effects:
    return {who: impact for who, impact in effects.items() if who in _OF_THE_STORED}


def _on_perhaps_stored(effects: Effects) -> Effects:
    return dict.fromkeys(_on_stored(effects), Impact.RISKY)


def _compare_used(
    old: DecodedVersion, new: DecodedVersion, pair: DefinitionPair, beside: FieldsBeside
) -> None:
    """What matters to the clients of a version besides its schema."""

    def say(kind: ChangeKind, message: str, *steps: str) -> None:
        path, old_path = new.path, old.path
        for step in steps:
            path, old_path = path.child(step), old_path.child(step)
        pair.say(kind, message, ".".join(steps), path, old_path, new.name)

    deprecation = ("deprecated", "deprecationWarning")
    if any(old.value.get(each) != new.value.get(each) for each in deprecation):
        messages = [from_to(each, old.value, new.value) for each in deprecation]
        say(kinds.DEPRECATION, ", ".join(messages), "deprecated")
    before, after = (each.value.get("subresources") or {} for each in (old, new))
    if "status" in after and "status" not in before:
        known = old.schema is None or may_have(old.schema, "status") or "status" in beside
        kind = kinds.STATUS_ENABLED if known else kinds.STATUS_ADDED
        say(kind, "the status subresource is there now", "subresources", "status")
    elif "status" in before and "status" not in after:
        say(kinds.STATUS_DISABLED, "the status subresource is gone", "subresources", "status")
    unpruned = bool(pair.old.spec.get("preserveUnknownFields"))
    spot = SchemaSpot(old.schema, unpruned) if old.schema is not None else SchemaSpot({}, unpruned=True)
    _compare_scale(before.get("scale"), after.get("scale"), spot, say)
    columns = [each.value.get("additionalPrinterColumns") or [] for each in (old, new)]
    if columns[0] != columns[1]:
        say(kinds.COLUMNS, _columns_text(*columns), "additionalPrinterColumns")
    selectable = [
        {field.get("jsonPath", "") for field in each.value.get("selectableFields") or ()}
        for each in (old, new)
    ]
    for path in sorted(selectable[0] - selectable[1]):
        say(kinds.SELECTABLE_FIELD_REMOVED, f"{path} removed", "selectableFields")
    for path in sorted(selectable[1] - selectable[0]):
        say(kinds.SELECTABLE_FIELD_ADDED, f"{path} added", "selectableFields")


def _compare_scale(
    old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, spot: SchemaSpot, say: Any
) -> None:
    """`spot` is the version's old schema."""
    if new is not None and old is None:
        say(kinds.SCALE_ADDED, "the scale subresource is there now", "subresources", "scale")
    elif old is not None and new is None:
        say(kinds.SCALE_REMOVED, "the scale subresource is gone", "subresources", "scale")
    elif old is not None and new is not None:
        for key in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"):
            if old.get(key) != new.get(key):
                kind = kinds.SCALE_PATH if old.get(key) else kinds.SELECTOR_PATH_ADDED
                say(kind, from_to(key, old, new), "subresources", "scale", key)
    for key, type_ in SCALE_TYPES.items():
        path = (new or {}).get(key)
        if not path or path == (old or {}).get(key):
            continue
        found = find(spot, path)
        if found is not None and not _can_be_scaled(found.schema, type_):
            message = f"{path} may have a value that is refused as {key}"
            say(kinds.SCALE_VALUES, message, "subresources", "scale", key)


def _can_be_scaled(schema: Schema, type_: str) -> bool:
    """Whether the API server takes all values of a schema behind /scale."""
    if schema.get("type") != type_ or schema.get("nullable"):
        return False
    small = schema.get("format") == "int32" or schema.get("maximum", math.inf) <= MOST_REPLICAS
    return type_ == "string" or (small and schema.get("minimum", -1) >= 0)


def _columns_text(old: list[Mapping[str, Any]], new: list[Mapping[str, Any]]) -> str:
    before, after = ({str(each.get("name", "")): each for each in columns} for columns in (old, new))
    parts = [f'"{name}" removed' for name in before if name not in after]
    parts += [f'"{name}" added' for name in after if name not in before]
    parts += [f'"{name}" changed' for name in after if name in before and before[name] != after[name]]
    more = f" and {len(parts) - 8} more" if len(parts) > 8 else ""
    return ", ".join(parts[:8]) + more if parts else "their order changed"


def _try_out(old: DecodedVersion, new: DecodedVersion, pair: DefinitionPair) -> TryOut:
    if old.schema is None or new.schema is None:
        return nothing_tried
    return Counterexamples(old.schema, new.schema, old.schema_path, pair.findings).try_out


def _compare_schemas(old: DecodedVersion, new: DecodedVersion, teller: Teller, pair: DefinitionPair) -> None:
    if old.schema is None:
        return
    if new.schema is None:
        at = new.path.child("schema"), old.path.child("schema")
        message = "the version has no schema any more"
        pair.say(schemakinds.SCHEMA_REMOVED, message, "schema", *at, version=new.name)
        return
    compare_schemas(old.schema, new.schema, old.schema_path, new.schema_path, teller)


def _compare_storage(pair: DefinitionPair) -> None:
    old, new = pair.old.storage, pair.new.storage
    if old is None or new is None or old.name == new.name:
        return
    kind = kinds.STORAGE_VERSION if new.name in pair.old.versions else kinds.STORAGE_VERSION_NEW
    at: tuple[Path, Path] = new.path.child("storage"), old.path.child("storage")
    pair.say(kind, f"storage version: {old.name} → {new.name}", "storage", *at, version=new.name)


def _compare_preferred(pair: DefinitionPair) -> None:
    old, new = pair.old.preferred, pair.new.preferred
    if old is None or new is None or old.name == new.name:
        return
    now = pair.new.versions.get(old.name)
    if now is None or not now.served:
        return  # which is already reported
    if now.schema is not None and new.schema is not None and equal(now.schema, new.schema):
        return
    message = f"clients that name no version get {new.name} instead of {old.name}"
    pair.say(kinds.PREFERRED_VERSION, message, "spec.versions", new.path, old.path, new.name)
