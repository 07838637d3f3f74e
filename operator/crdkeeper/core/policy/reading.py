"""Reads a DefinitionPolicy, also one that was written for another release of crdkeeper.

A cluster's CRD can be of another release, and accept what this one does not know. Such a policy may still be
the oldest one that selects a CRD, so that no other must act there in its place: it is read as one that
selects the same CRDs, and does nothing for them.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from crdkeeper.api.definitionpolicy import DefinitionPolicy, DefinitionPolicySpec, DefinitionPolicyStatus
from crdkeeper.api.texts import described
from crdkeeper.core.text import visible

_KEPT: Final = ("selector", "groups", "protection")
"""Which CRDs it selects; and what the API server does without us, which we only count."""


class UnreadablePolicy(DefinitionPolicy):
    """A policy that holds its CRDs. If its selector or its groups cannot be read, it may select any CRD."""

    problem: str
    """Which fields cannot be read, and why."""


def read_policy(found: Mapping[str, Any]) -> DefinitionPolicy:
    """The policy. Raises ValidationError only for metadata that no API server has written."""
    # A status that can be read stays also when the spec cannot, or each round would write it anew, and be
    # woken by that.
    if not _readable(DefinitionPolicyStatus, found.get("status", {})):
        found = {**found, "status": {}}  # ours: it is written anew
    try:
        return DefinitionPolicy.model_validate(found)
    except ValidationError as error:
        spec: dict[str, Any] = {"storageMigration": {"mode": "Disabled"}}
        written = found.get("spec") or {}
        spec |= {
            each: written[each]
            for each in _KEPT
            if each in written and _readable(DefinitionPolicySpec, {each: written[each]})
        }
        return UnreadablePolicy.model_validate({**found, "spec": spec, "problem": visible(described(error))})


def _readable(model: type[BaseModel], value: Any) -> bool:
    try:
        model.model_validate(value)
    except ValidationError:
        return False
    return True


def why_unread(policy: DefinitionPolicy) -> str:
    """Which fields of a policy cannot be read; empty if all can."""
    return policy.problem if isinstance(policy, UnreadablePolicy) else ""
