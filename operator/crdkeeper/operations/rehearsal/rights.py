"""The permissions that a rehearsal needs: checked in advance, with the rules to add."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.cluster.resources.access import Right, missing_rights
from crdkeeper.cluster.transport.client import Client
from crdkeeper.core.rehearsal.shadow import GROUP

_CRDS = "customresourcedefinitions"
_APIEXTENSIONS = "apiextensions.k8s.io"


class NotPermitted(Exception):
    """Our account lacks permissions."""

    def __init__(self, missing: Sequence[Right]) -> None:
        self.missing = f"not permitted: {'; '.join(map(str, missing))}"
        self.rules = [line for each in missing for line in _rule(each)]
        """The rules to add, as lines of YAML."""
        super().__init__("\n".join((f"{self.missing}. {TO_ADD}", *self.rules)))


TO_ADD = "Add these rules to a ClusterRole of this account:"
"""The text that precedes them."""


def rights_to_try(manifest: Mapping[str, Any], *, exists: bool) -> list[Right]:
    """The permissions for a dry run of a CRD, and for reading its objects."""
    if not exists:
        return [Right("create", _APIEXTENSIONS, _CRDS)]
    spec, name = manifest["spec"], manifest["metadata"]["name"]
    group, plural = str(spec.get("group")), str((spec.get("names") or {}).get("plural"))
    return [
        *(Right(verb, group, plural) for verb in ("list", "get")),
        Right("update", _APIEXTENSIONS, _CRDS, name=name),
        Right("get", _APIEXTENSIONS, _CRDS),
    ]


def rights_for_a_shadow() -> list[Right]:
    """The permissions to create a shadow, to validate objects with it, and to remove it."""
    return [*(Right(verb, _APIEXTENSIONS, _CRDS) for verb in ("create", "get", "list", "delete")), _JUDGE]


_JUDGE = Right("create", GROUP, "*")


async def check_rights(client: Client, needed: Sequence[Right]) -> None:
    answers = await asyncio.gather(*(missing_rights(client, [each]) for each in needed))
    missing = [right for answer in answers for right in answer]
    if missing:
        raise NotPermitted(missing)


def _rule(right: Right) -> list[str]:
    lines = [
        f'- apiGroups: ["{right.group}"]',
        f'  resources: ["{right.resource}"]',
        f"  verbs: [{right.verb}]",
    ]
    if right.name:
        lines.insert(2, f"  resourceNames: [{right.name}]")
    return lines
