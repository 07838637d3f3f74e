"""Decides whether an update of a CRD is applied, and which of its versions are served yet.

What would lose or refuse a live object is refused, and so is what breaks a promise to clients: where there
are composites, there are clients, and not all that they send shows in an object. Without composites nobody is
hurt, except by versions that nothing converts: their clients will lose data later. `breakingChanges: Allow`
leaves only what the API server refuses.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinition
from crdkeeper.core.compatibility.change import Change
from crdkeeper.core.composer import reasons
from crdkeeper.core.composer.composedversions import composed_at, versions_that_go
from crdkeeper.core.composer.update import Rehearsed, Update, UpdateFacts, converts
from crdkeeper.core.composer.wording import listed, sentences
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.rehearsal.effect import EffectKind
from crdkeeper.core.rehearsal.tally import EffectCount
from crdkeeper.core.removedversions import APPLY_REMEDY

_ALLOW = "Or set spec.breakingChanges to Allow."
_UNNAMED = "<nil>"
"""The API server's path of an object as a whole."""


def still_stored(definition: CompositeResourceDefinition, live: Mapping[str, Any]) -> Verdict | None:
    """The refusal of a definition that lacks a version in which composites may be stored."""
    present = {each.name for each in definition.spec.versions}
    stored = (live.get("status") or {}).get("storedVersions") or ()
    gone = [each for each in stored if each not in present]
    if not gone:
        return None
    names = ", ".join(gone)
    return Verdict(
        reasons.VERSION_STORED,
        f"The CRD's status.storedVersions still has {names}: composites may be stored in it, and the API "
        f"server keeps the version until none is. Put {names} back into spec.versions, with served: false if "
        "nobody uses it; the StorageMigration of the definition moves the composites, and when the condition "
        "StorageCurrent is True, the version can go.",
    )


def refused(
    definition: CompositeResourceDefinition,
    live: Mapping[str, Any] | None,
    composites: int | None,
    exist: str,
    facts: UpdateFacts,
    hidden: Reason | None = None,
) -> Verdict | None:
    """Why the CRD stays as it is; None if the update can be applied. `exist` says how many there are.

    If that is not known, `hidden` is the reason.
    """
    update = facts.update
    if definition.spec.breaking_changes == "Allow":
        return None
    if update.problem:
        # A CRD that does not exist yet has no clients, but its versions cannot be compared either.
        return None if composites == 0 and live is not None else _not_comparable(update, live, exist)
    unconverted = _unconverted(definition, update)
    if unconverted is not None or live is None or composites == 0:
        return unconverted
    return (
        _in_use(definition, live, exist)
        or composed_at(definition, versions_that_go(definition, live), facts.revisions)
        or _hurts(definition, composites, exist, facts, hidden)
    )


def needs_rehearsal(definition: CompositeResourceDefinition, composites: int | None, update: Update) -> bool:
    """Whether the decision depends on what the update does to each composite."""
    allowed = definition.spec.breaking_changes == "Allow"
    return not allowed and bool(composites) and not update.problem and update.concerns_composites


def held_versions(
    definition: CompositeResourceDefinition,
    live: Mapping[str, Any] | None,
    facts: UpdateFacts,
) -> tuple[str, ...]:
    """The versions that are not served yet, because the rules that convert them are not in place.

    The operator verifies rules against the versions of the live CRD, so the versions come first, unserved:
    nobody reads or writes at them without conversion.
    """
    if facts.update.rules.after is None or facts.conversion is None:
        return ()
    if live is not None and converts(facts.conversion, live):
        return ()
    today = _served(live) if live is not None else set()
    return tuple(
        each.name
        for each in definition.spec.versions
        if each.served and each.name not in today and not (live is None and each.referenceable)
    )


def staged(made: Mapping[str, Any], live: Mapping[str, Any] | None, held: Sequence[str]) -> Mapping[str, Any]:
    """The definition's CRD without serving these versions, nor storing in them.

    Versions that are served today stay so until then.
    """
    if not held:
        return made
    found = copy.deepcopy(dict(made))
    versions = found["spec"]["versions"]
    if live is None:
        today: set[str] = set()
        storage = next(each["name"] for each in versions if each["storage"])
    else:
        today = _served(live)
        storage = next(each["name"] for each in live["spec"]["versions"] if each["storage"])
    for each in versions:
        each["served"] = each["name"] not in held and (each["served"] or each["name"] in today)
        each["storage"] = each["name"] == storage
    return found


def pending(held: Sequence[str], conversion: Mapping[str, Any]) -> Verdict:
    """What the versions that are not served yet wait for."""
    name = conversion["metadata"]["name"]
    conditions = (conversion.get("status") or {}).get("conditions") or ()
    said = next((each for each in conditions if each.get("type") == "Ready"), None)
    state = f"{said.get('reason')}: {said.get('message')}" if said is not None else "it has no status yet"
    return Verdict(
        reasons.CONVERSION_PENDING,
        f"The CRD has {', '.join(held)}, and serves it once the VersionConversion {name} converts it. Its "
        f"condition Ready says {state}",
    )


def _served(crd: Mapping[str, Any]) -> set[str]:
    return {each["name"] for each in crd["spec"]["versions"] if each["served"]}


def _unconverted(definition: CompositeResourceDefinition, update: Update) -> Verdict | None:
    name = definition.metadata.name
    if update.rules.errors:
        said = listed(update.rules.errors)
        return Verdict(
            reasons.CONVERSION_INCOMPLETE,
            f"The VersionConversion {name} does not convert between the versions of this definition: {said}",
        )
    if not update.unconverted or update.rules.after is not None:
        return None
    said = listed(
        [f"{each.place.version}: {each.place.field}: {each.message}" for each in update.unconverted]
    )
    return Verdict(
        reasons.CONVERSION_MISSING,
        f"Nothing converts between these versions, so that fields would be lost: {said}. Let them have the "
        f"same fields, or create a VersionConversion such as {update.proposal} {_ALLOW}",
    )


def _not_comparable(update: Update, live: Mapping[str, Any] | None, exist: str) -> Verdict:
    of = f"what the change does to clients and to {exist}" if live is not None else "what its versions share"
    message = f"{update.problem}, so {of} is not known. Check it, then set spec.breakingChanges to Allow."
    return Verdict(reasons.NOT_COMPARABLE, message)


def _in_use(definition: CompositeResourceDefinition, live: Mapping[str, Any], exist: str) -> Verdict | None:
    present = {each.name: each.served for each in definition.spec.versions}
    said = []
    for each in live["spec"]["versions"]:
        name = each["name"]
        if not each["served"] or present.get(name):
            continue
        if name not in present:
            said.append(f"{name} is served: set deprecated: true, then served: false, before you remove it")
        elif not each.get("deprecated"):
            said.append(
                f"{name} is not deprecated: set deprecated: true first, so that clients are warned before "
                "they get 404"
            )
    if not said:
        return None
    return Verdict(reasons.VERSION_IN_USE, f"{exist}: {listed(said)}. {_ALLOW}")


def _hurts(
    definition: CompositeResourceDefinition,
    composites: int | None,
    exist: str,
    facts: UpdateFacts,
    hidden: Reason | None,
) -> Verdict | None:
    update, rehearsal = facts.update, facts.rehearsal
    if not update.concerns_composites:
        return None
    if composites is None:
        if update.breaking:
            return Verdict(reasons.BREAKING_CHANGES, f"{exist}: {_changes(update.breaking)} {_ALLOW}")
        risky = f"The change may hurt composites: {_changes(update.changes)}"
        passes = hidden is reasons.NOT_LISTED
        reason = reasons.COMPOSITES_NOT_LISTED if passes else reasons.COMPOSITES_UNKNOWN
        return Verdict(reason, f"{risky} {exist[0].upper()}{exist[1:]}. {_ALLOW}")
    report, failure = rehearsal.report, rehearsal.failure
    if report is None:
        passing = failure is None or failure.passing
        waits = " as soon as the rehearsals of other definitions leave room" if rehearsal.waits else ""
        message = f"The change is tried on {exist}{waits}.{_tried(rehearsal)}"
        if failure is not None:
            message = f"{message} {_ALLOW}"
        return Verdict(reasons.REHEARSING if passing else reasons.NOT_PREDICTED, message)
    found = [each for each in report.tally.findings() if not each.at_new_version]
    harm = [each for each in found if each.kind.is_harm]
    if harm or update.breaking:
        parts = [f"Tried on {exist}: {listed(list(_findings(harm))) if harm else 'none is affected'}."]
        if update.breaking:
            parts.append(_changes(update.breaking))
        if any(each.kind is EffectKind.APPLY_FAILS for each in harm):
            parts.append(APPLY_REMEDY.replace("PLURAL.GROUP", definition.metadata.name))
        return Verdict(reasons.BREAKING_CHANGES, f"{' '.join([*parts, _ALLOW])}{_tried(rehearsal)}")
    unclear = [each for each in found if each.kind is EffectKind.INDETERMINATE]
    if unclear:
        message = f"Tried on {exist}: {listed(list(_findings(unclear)))}. {_ALLOW}{_tried(rehearsal)}"
        return Verdict(reasons.NOT_PREDICTED, message)
    return None


def _tried(rehearsal: Rehearsed) -> str:
    """When the result was found, and why the last attempt came to none; with a blank before."""
    said = ""
    if rehearsal.at is not None:
        # To the minute: each attempt on many composites would change the status otherwise.
        said = f" This was tried at {rehearsal.at:%H:%M} UTC, and is tried again within minutes."
    failure = rehearsal.failure
    if failure is not None:
        said += (
            f" The attempt at {failure.at:%H:%M:%S} UTC failed: {failure.problem}. "
            f"The next one begins after {failure.next:%H:%M:%S} UTC."
        )
    return said


def _findings(found: Sequence[EffectCount]) -> Iterator[str]:
    """Each effect, with the number of composites and the first of them."""
    for each in found:
        names = ", ".join(str(example) for example in each.examples)
        more = f" and {each.count - len(each.examples):,} more" if each.count > len(each.examples) else ""
        about = f"{each.field}: " if each.field not in ("", _UNNAMED) else ""
        said = f": {each.message}" if each.message else ""
        yield f"{each.count:,} ({names}{more}): {about}{each.kind.meaning}{said}"


def _changes(changes: Sequence[Change]) -> str:
    """Each change with whom it hurts and the remedy."""
    said = [
        f"{each.place.version} {each.place.field}: {each.message} (for "
        f"{', '.join(audience.value for audience in each.affected)}). {each.kind.remedy}".strip()
        for each in changes
    ]
    return sentences(said, "change")
