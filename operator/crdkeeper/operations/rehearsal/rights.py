"""The permissions that a rehearsal needs: checked in advance."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.cluster.resources.access import Right
from crdkeeper.core.rehearsal.shadow import GROUP
from crdkeeper.operations.rights import DEFINITIONS


def rights_to_try(manifest: Mapping[str, Any], *, exists: bool) -> list[Right]:
    """The permissions for a dry run of a CRD, and for reading its objects."""
    if not exists:
        return [Right("create", *DEFINITIONS)]
    spec, name = manifest["spec"], manifest["metadata"]["name"]
    group, plural = str(spec.get("group")), str((spec.get("names") or {}).get("plural"))
    return [
        *(Right(verb, group, plural) for verb in ("list", "get")),
        Right("update", *DEFINITIONS, name=name),
        Right("get", *DEFINITIONS),
    ]


def rights_for_a_shadow() -> list[Right]:
    """The permissions to create a shadow, to validate objects with it, and to remove it."""
    return [*(Right(verb, *DEFINITIONS) for verb in ("create", "get", "list", "delete")), _JUDGE]


_JUDGE = Right("create", GROUP, "*")
