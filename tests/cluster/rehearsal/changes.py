"""All kinds of changes that rehearsals are tested with, by name."""

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.cluster.rehearsal import schemachanges as schemas
from tests.cluster.rehearsal import versionchanges as versions
from tests.cluster.rehearsal.spots import NotHere

Json = Any
Change = Callable[[Json, Sequence[Json], Random], None]

CHANGES: dict[str, Change] = {
    "a field removed": schemas.field_removed,
    "a field renamed": schemas.field_renamed,
    "a type changed": schemas.type_changed,
    "a field required": schemas.required_added,
    "a new field required": schemas.new_required_field,
    "an enum narrowed": schemas.enum_narrowed,
    "a text tightened": schemas.text_tightened,
    "a number tightened": schemas.number_tightened,
    "a size tightened": schemas.size_tightened,
    "a default added": schemas.default_added,
    "a default changed or removed": schemas.default_changed,
    "a CEL rule added": schemas.rule_added,
    "a list type set": schemas.list_type,
    "preserve-unknown-fields removed": schemas.preserve,
    "preserve-unknown-fields added": schemas.preserve_added,
    "nullable removed": schemas.nullable,
    "int-or-string switched": schemas.int_or_string,
    "additionalProperties changed": schemas.entries,
    "properties opened": schemas.opened,
    "an embedded resource": schemas.embedded,
    "a junctor added": schemas.junctor,
    "a version added": versions.version_added,
    "a version unserved": versions.version_unserved,
    "a version removed": versions.version_removed,
    "the stored version removed": versions.stored_version_removed,
    "the status subresource switched": versions.status_switched,
    "the scale subresource added": versions.scale_added,
    "the scope changed": versions.scope_changed,
}
"""Reversible ones: by name, in the order in which they are applied to a CRD."""

LAST: dict[str, Change] = {"the storage version changed": versions.storage_flipped}
"""Those that leave a trace in status.storedVersions."""


def changed(crd: Json, change: Change, objects: Sequence[Json], random: Random) -> Json:
    """The CRD after a change. Raises NotHere."""
    new = copy.deepcopy(crd)
    change(new, objects, random)
    if new == crd:
        raise NotHere
    return new
