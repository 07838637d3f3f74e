"""Compares two CRDs, and says whom each change hurts: the entry to this package.

old, new → decode → identity, names, conversion → versions → schemas of each version
                  → served versions of the new CRD with one another
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crdkeeper.apiserver.definitions.create import check_creation, decode
from crdkeeper.apiserver.definitions.update import check_update
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.compatibility import definitionkinds
from crdkeeper.core.compatibility.change import Change, ChangeKind, Impact, Place, Severities
from crdkeeper.core.compatibility.definitions import (
    DecodedDefinition,
    DefinitionPair,
    compare_conversion,
    compare_identity,
    compare_names,
)
from crdkeeper.core.compatibility.findings import (
    MAX_RULE_CHARACTERS,
    MAX_STEPS,
    Allowance,
    Changes,
    Exhausted,
)
from crdkeeper.core.compatibility.registry import declared
from crdkeeper.core.compatibility.served import compare_all_served, compare_served
from crdkeeper.core.compatibility.versions import compare_versions
from crdkeeper.core.text import count


class NotComparable(Exception):
    """One of the two documents is not a CRD that the API server could read."""

    def __init__(self, path: Path, message: str, *, is_new: bool) -> None:
        super().__init__(f"{path}: {message}" if path.steps else message)
        self.path = path
        self.is_new = is_new
        """Whether it is the new one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from one CRD to another."""

    changes: tuple[Change, ...]
    """The worst first, up to `findings.MAX_KEPT` of each severity."""
    counts: Mapping[Impact, int]
    """All of them, by severity."""
    complete: bool
    """False if the CRDs are so large that the comparison was stopped early."""
    steps: int = 0
    """The work that it took."""
    chosen: int = 0
    """How many changes have a severity from a configuration that differs from that of their effects."""
    left_out: int = 0
    """How many changes are not listed because a configuration disables their kind."""

    @property
    def severity(self) -> Impact:
        """The worst of all changes."""
        return next((each for each in Impact if self.counts.get(each)), Impact.SAFE)


def all_kinds() -> tuple[ChangeKind, ...]:
    """Every kind of change, by id. Importing this module imports all modules that declare kinds."""
    return declared()


def compare(
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    *,
    converted: bool = False,
    severities: Severities | None = None,
    max_steps: int = MAX_STEPS,
) -> Comparison:
    """Determine what a new CRD (apiextensions.k8s.io/v1) does to those who relied on the old one.

    None means a CRD that does not exist. `converted` says that a webhook converts between the versions even
    if the documents do not. `severities` replace those of the effects, except for kinds that are fixed.
    Raises NotComparable.
    """
    findings = Changes(Allowance(max_steps), severities=severities)
    if old is None or new is None:
        if old is not new:
            kind = definitionkinds.DEFINITION_ADDED if old is None else definitionkinds.DEFINITION_REMOVED
            message = "a new CRD" if old is None else "the CRD is gone"
            place = Place("", "spec", root("spec"), root("spec"))
            findings.add(Change(kind, place, message, kind.effects))
        if old is None and new is not None and _serves_none(new):
            at = root("spec").child("versions")
            kind = definitionkinds.NONE_SERVED
            findings.add(
                Change(kind, Place("", "spec.versions", at, at), "no version is served", kind.effects)
            )
        return _result(findings, complete=True)
    before = _definition(old, is_new=False, converted=converted)
    pair = DefinitionPair(before, _definition(new, is_new=True, converted=converted), findings)
    judged = max(before.rule_characters(), pair.new.rule_characters()) <= MAX_RULE_CHARACTERS
    try:
        compare_identity(pair)
        compare_names(pair)
        compare_conversion(pair)
        if judged:
            # Before what may take too long.
            _tell_refused(old, new, pair)
        compare_versions(pair)
        compare_served(pair)
    except (Exhausted, RecursionError):
        return _result(findings, complete=False)
    return _result(findings, complete=judged)


def compare_served_versions(document: Mapping[str, Any]) -> Comparison:
    """Determine how the served versions of one CRD differ for who uses both. Raises NotComparable."""
    findings = Changes(Allowance(MAX_STEPS))
    definition = _definition(document, is_new=True, converted=False)
    try:
        compare_all_served(definition, findings)
    except (Exhausted, RecursionError):
        return _result(findings, complete=False)
    return _result(findings, complete=True)


def _serves_none(document: Mapping[str, Any]) -> bool:
    """Whether a new CRD serves no version; False if it cannot be read."""
    try:
        decoded = decode(document, Report())
    except RecursionError:
        return False
    return decoded is not None and DecodedDefinition(decoded, frozenset()).serves_none


def _definition(document: Mapping[str, Any], *, is_new: bool, converted: bool) -> DecodedDefinition:
    report = Report()
    try:
        decoded = decode(document, report)
    except RecursionError:
        raise NotComparable(root("spec"), "it nests too deep", is_new=is_new) from None
    for violation in report.violations:
        if violation.rule is rules.API_VERSION:
            message = f"{violation.value} is not compared; `crdkeeper upgrade-manifest` rewrites v1beta1"
            raise NotComparable(violation.path, message, is_new=is_new)
        if violation.rule is rules.DECODE:
            raise NotComparable(violation.path, violation.message, is_new=is_new)
    if decoded is None:
        raise NotComparable(Path("", ()), "it is no CRD", is_new=is_new)
    stored = decoded.get("status", {}).get("storedVersions", ())
    return DecodedDefinition(decoded, frozenset(stored), converted)


_TOLD = frozenset((rules.IMMUTABLE, rules.STORED_VERSIONS, rules.NAME, rules.RESOURCE_VERSION))
"""Rules of an update for which there are more specific kinds of changes."""


def _tell_refused(old: Mapping[str, Any], new: Mapping[str, Any], pair: DefinitionPair) -> None:
    found = [each for each in check_update(new, old).violations if each.rule not in _TOLD]
    # A file may contain only a part of a CRD, such as a patch, which is not a change.
    known = {(str(each.path), each.message) for each in check_creation(old).violations} if found else set()
    shared = [each for each in found if (str(each.path), each.message) in known]
    for each in found:
        if (str(each.path), each.message) not in known:
            pair.say(definitionkinds.REFUSED, each.message, str(each.path), each.path)
    if shared:
        first = shared[0]
        more = f", and {count(len(shared) - 1, 'more fault')}" if len(shared) > 1 else ""
        pair.say(definitionkinds.NOT_ACCEPTED, f"{first.message}{more}", str(first.path), first.path)


def _result(findings: Changes, *, complete: bool) -> Comparison:
    changes = sorted(
        findings.changes,
        key=lambda each: (each.severity.rank, each.place.version, each.place.field, each.kind.id),
    )
    return Comparison(
        tuple(changes),
        dict(findings.counts),
        complete,
        findings.allowance.spent,
        findings.chosen,
        findings.left_out,
    )
