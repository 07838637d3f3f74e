"""Whether the changes of CRDs are judged that a policy wants to have judged."""

from typing import Final

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import ConditionStatus

CHANGES_JUDGED: Final = "ChangesJudged"


def changes_judged(policy: DefinitionPolicy, trouble: str) -> tuple[ConditionStatus, str, str] | None:
    """Status, reason and message of the condition; None if the policy does not want it.

    `trouble` is why the webhook does not judge.
    """
    if policy.spec.changes == "Allow":
        return None
    if trouble:
        return "False", "NotInForce", f"All changes pass, without warnings: {trouble}."
    if policy.spec.changes == "Deny":
        return "True", "InForce", "The webhook warns of changes, and refuses those that harm live objects."
    return "True", "InForce", "The webhook warns of changes."
