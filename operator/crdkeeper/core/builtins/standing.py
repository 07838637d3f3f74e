"""The conditions of a BuiltinPolicy, from its resources and a look at the API servers."""

from collections.abc import Sequence
from dataclasses import dataclass

from crdkeeper.api.builtinpolicy import BuiltinPolicy, BuiltinResource
from crdkeeper.api.meta import ConditionStatus
from crdkeeper.core.builtins.plan import ROLE_LABEL, rule
from crdkeeper.core.builtins.view import FORBIDDEN, View
from crdkeeper.core.text import count

_SHOWN = 5
_METRICS_RULE = "{nonResourceURLs: [/metrics], verbs: [get]}"
_WAITING = ("Settling", "Waiting", "ServersDisagree", "AnotherMigration", "Forbidden", "NameTaken")
"""Reasons of resources that have no migration."""


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """A condition."""

    status: ConditionStatus
    reason: str
    message: str


def ready(
    policy: BuiltinPolicy,
    resources: Sequence[BuiltinResource],
    failing: Sequence[str],
    unknown: Sequence[str],
    seen: PolicyCondition,
) -> PolicyCondition:
    """The condition Ready.

    `failing` are the resources whose migrations fail, `unknown` the patterns that name no resource, and
    `seen` is the condition EncryptionObserved: who removes an old key because
    Ready is True must not be wrong.
    """
    due = [each for each in resources if not each.migrated]
    if unknown:
        return PolicyCondition(
            "False",
            "NoSuchResource",
            f"The API servers store no built-in resource {_some(unknown)}. Objects of CRDs are migrated by "
            "DefinitionPolicies and StorageMigrations.",
        )
    if forbidden := [each.resource for each in due if each.reason == "Forbidden"]:
        rules = ", ".join(rule(each) for each in forbidden[:_SHOWN])
        return PolicyCondition(
            "False",
            "Forbidden",
            f"The operator may not migrate {_some(forbidden)}. Apply a ClusterRole with the {ROLE_LABEL} and "
            f"rules: [{rules}]",
        )
    if taken := [each for each in due if each.reason == "NameTaken"]:
        return PolicyCondition("False", "NameTaken", taken[0].message)
    if failing:
        return PolicyCondition(
            "False",
            "MigrationFailing",
            f"{count(len(failing), 'migration')} not successful: {_some(failing)}; see status.resources.",
        )
    if disagreeing := [each.resource for each in due if each.reason == "ServersDisagree"]:
        return PolicyCondition(
            "Unknown",
            "ServersDisagree",
            f"The API servers store {_some(disagreeing)} differently. Waiting until they agree.",
        )
    if due and policy.spec.mode == "Plan" and not any(each.reason in _WAITING for each in due):
        return PolicyCondition(
            "True", "Planned", f"{count(len(due), 'resource')} due, which mode Plan does not migrate."
        )
    if due:
        return PolicyCondition(
            "Unknown",
            "Migrating",
            f"{len(due)} of {count(len(resources), 'resource')} due: {_some([at.resource for at in due])}.",
        )
    all_of_them = count(len(resources), "resource")
    observed = seen.status == "True"
    if not observed and not policy.spec.encryption_key:
        return PolicyCondition(
            "Unknown",
            "EncryptionNotObserved",
            f"{all_of_them}, none due as far as known; but a change of encryption keys would not be seen "
            "(see EncryptionObserved). Set spec.encryptionKey, to any text if nothing is encrypted, and "
            "change it after each change of keys.",
        )
    unless = "" if observed else ", unless keys have changed after spec.encryptionKey"
    return PolicyCondition(
        "True", "Current", f"{all_of_them}, each proved to be stored as the API servers do now{unless}."
    )


def encryption(view: View) -> PolicyCondition:
    """The condition EncryptionObserved: whether a change of the encryption configuration would be seen."""
    found = view.configurations
    key = "Until then, change spec.encryptionKey after each change of keys."
    if found is None and view.unread not in ("", FORBIDDEN):
        return PolicyCondition(
            "Unknown", "MetricsUnreadable", f"The API servers' metrics cannot be read: {view.unread}. {key}"
        )
    if found is None:
        return PolicyCondition(
            "Unknown",
            "NotPermitted",
            f"The operator may not read the API servers' metrics. {key} Or apply a ClusterRole with the "
            f"{ROLE_LABEL} and rules: [{_METRICS_RULE}]",
        )
    if len(found) > 1:
        return PolicyCondition(
            "False", "ServersDisagree", f"The API servers run with different configurations: {_named(found)}."
        )
    if view.unasked:
        return PolicyCondition(
            "Unknown",
            "NotAllAsked",
            f"{len(view.unasked)} of {count(view.servers, 'API server')} did not answer any connection: "
            f"{_some(view.unasked)}. {key}",
        )
    if view.unencrypted:
        return PolicyCondition(
            "True",
            "NotEncrypted",
            f"{count(view.servers, 'API server')} without an encryption configuration.",
        )
    if not any(found):
        return PolicyCondition(
            "Unknown",
            "NotReported",
            "No API server that was asked reports an encryption configuration: it has none, or its release "
            f"reports none, or another one was not asked. {key}",
        )
    if not view.servers:
        return PolicyCondition(
            "Unknown",
            "NotAllAsked",
            "No Lease in kube-system shows how many API servers there are. Those that were asked run with "
            f"configuration {found[0]}. {key}",
        )
    return PolicyCondition(
        "True", "Observed", f"{count(view.servers, 'API server')} with configuration {found[0]}."
    )


def _named(configurations: Sequence[str]) -> str:
    return _some([each or "none" for each in configurations])


def _some(each: Sequence[str]) -> str:
    more = f" and {len(each) - _SHOWN} more" if len(each) > _SHOWN else ""
    return ", ".join(each[:_SHOWN]) + more
