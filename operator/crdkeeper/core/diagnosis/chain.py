"""The conditions of a report: one judge for each, from the same facts, in the order of their weight."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from crdkeeper.core.diagnosis import (
    approval,
    conversion,
    established,
    namesaccepted,
    storage,
    structural,
    subresources,
    terminating,
    versions,
)
from crdkeeper.core.diagnosis.conversion import ConversionFacts
from crdkeeper.core.diagnosis.facts import Facts
from crdkeeper.core.diagnosis.ready import summarize
from crdkeeper.core.diagnosis.subresources import SubresourceFacts
from crdkeeper.core.diagnosis.terminating import TerminatingFacts
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.diagnosis.versions import VersionsFacts

Judge = Callable[[Facts], Verdict]


def _terminating(facts: Facts) -> Verdict:
    seen = facts.seen
    return terminating.judge(TerminatingFacts(seen.definition, seen.deletion, facts.live.blockers))


def _conversion(facts: Facts) -> Verdict:
    seen = facts.seen
    return conversion.judge(ConversionFacts(seen.definition, seen.webhook, facts.live.conversion, facts.now))


def _subresources(facts: Facts) -> Verdict:
    declared = facts.assessment.subresources
    return subresources.judge(SubresourceFacts(facts.seen.definition, declared, facts.live.scale))


def _versions(facts: Facts) -> Verdict:
    seen = facts.seen
    return versions.judge(VersionsFacts(seen.definition, seen.deprecated, facts.live.census))


CHAIN: Mapping[str, Judge] = {
    "Terminating": _terminating,
    "NamesAccepted": lambda facts: namesaccepted.judge(facts.seen, facts.conflicts),
    "Established": lambda facts: established.judge(facts.seen),
    "NonStructuralSchema": lambda facts: structural.judge(facts.assessment.structure),
    "ConversionReady": _conversion,
    "StorageCurrent": lambda facts: storage.judge(facts.seen.definition, facts.migrations),
    "SubresourcesReady": _subresources,
    "VersionsCurrent": _versions,
    "KubernetesAPIApprovalPolicyConformant": lambda facts: approval.judge(facts.seen),
}
"""The first that is not in order gives Ready its reason: causes come before what follows from them."""

PROBED = frozenset(("Terminating", "ConversionReady", "SubresourcesReady", "VersionsCurrent"))
"""Conditions that depend on what probes find."""

ASSESSED = frozenset(("NonStructuralSchema", "SubresourcesReady"))
"""Conditions that depend on the schemas."""


def diagnose(facts: Facts, kept: Mapping[str, Verdict] = MappingProxyType({})) -> Sequence[Verdict]:
    """The verdicts on all conditions: Ready, and what it sums up. Those in `kept` are not judged anew."""
    verdicts = [kept.get(type_) or judge(facts) for type_, judge in CHAIN.items()]
    return [summarize(verdicts, facts.assessment.findings), *verdicts]
