"""The conditions of a report: the one list for reports, their documentation and their probes."""

from collections.abc import Mapping

from crdkeeper.core.diagnosis.conditions import (
    approval,
    conversion,
    established,
    namesaccepted,
    ready,
    scaling,
    statuswriters,
    storage,
    structural,
    subresources,
    terminating,
    versions,
)
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.verdict import Reason

CONDITIONS: tuple[ConditionType, ...] = (
    terminating.CONDITION,
    namesaccepted.CONDITION,
    established.CONDITION,
    structural.CONDITION,
    conversion.CONDITION,
    storage.CONDITION,
    subresources.CONDITION,
    scaling.CONDITION,
    statuswriters.CONDITION,
    versions.CONDITION,
    approval.CONDITION,
)
"""In the order of a report, where they follow Ready, which summarizes them.

Ready gets its reason from the first that is not healthy: causes come before their effects.
"""

REASONS: Mapping[str, tuple[Reason, ...]] = {
    ready.TYPE: ready.REASONS,
    **{each.type: each.reasons for each in CONDITIONS},
}
"""The reasons of each condition by its type, in the order of a report.

Ready also shows the unhealthy ones of all others.
"""

ASSESSED = frozenset(each.type for each in CONDITIONS if each.assessed)
"""Conditions that depend on the schemas."""

PROBED = frozenset(each.type for each in CONDITIONS if each.fact)
"""Conditions that depend on what a probe finds."""
