"""Compares the CRD of a definition with the live one, and its versions with each other, before it is applied.

All that takes time is done here, once for each change, so that a thread can do it; `updaterefusal` decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final

from pydantic import ValidationError

from crdkeeper.api.meta import API_VERSION, READY
from crdkeeper.api.storagemigration import StorageMigration
from crdkeeper.api.texts import described
from crdkeeper.api.versionconversion import VersionConversion, VersionConversionSpec
from crdkeeper.apiserver.definitions.create import check_creation
from crdkeeper.apiserver.definitions.schemas import UnreadableDefinition, schemas_of
from crdkeeper.apiserver.definitions.update import check_update
from crdkeeper.core.compatibility import definitionkinds as kinds
from crdkeeper.core.compatibility.change import Audience, Change, Impact
from crdkeeper.core.compatibility.compare import Comparison, NotComparable, compare, compare_served_versions
from crdkeeper.core.composer.advice import Advice
from crdkeeper.core.composer.composedversions import RevisionUse
from crdkeeper.core.composition.acceptance import Acceptance, with_server_errors
from crdkeeper.core.conversion.likeness import in_yaml
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.core.conversion.target import ConversionOwner, WebhookAddress, holder, serving_address
from crdkeeper.core.rehearsal.report import RehearsalReport
from crdkeeper.core.rehearsal.update import applied

_UNCONVERTED: Final = frozenset((kinds.SERVED_FIELD, kinds.SERVED_TYPE))
"""What is lost or becomes invalid between two versions if nothing converts."""
_OF_VERSIONS: Final = frozenset(
    (kinds.VERSION_REMOVED, kinds.VERSION_NOT_SERVED, kinds.STORED_VERSION_REMOVED)
)
"""Which versions may go is decided by how they are used, see `updaterefusal`."""
_MOVES: Final = frozenset((kinds.STORAGE_VERSION, kinds.STORAGE_VERSION_NEW))
_UNTOLD: Final = (
    "status.clientConfig does not say by which webhook its rules are served, so they do not count: the "
    "operator or crds/ are of an older release; apply crds/ again and upgrade the operator"
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The VersionConversion of a CRD, as far as it concerns the versions of the definition."""

    exist: bool = False
    errors: Sequence[str] = ()
    """Why they do not convert between the versions; rules that could be added are proposed."""
    before: Conversion | None = None
    """How they convert the live CRD; None if they do not."""
    after: Conversion | None = None
    """How they will convert the definition's CRD; None if they will not."""


@dataclass(frozen=True, slots=True)
class Update:
    """What becomes of a CRD and its clients when the definition's CRD is applied."""

    problem: str = ""
    """Why the CRDs cannot be compared."""
    changes: Sequence[Change] = ()
    """The changes that are not safe for everyone, without those of `unconverted`."""
    unconverted: Sequence[Change] = ()
    """Differences between served versions by which data is lost if nothing converts. Nothing does today."""
    rules: Rules = field(default_factory=Rules)
    proposal: str = ""
    """A VersionConversion as one line of YAML that would convert `unconverted`; empty if there is one."""

    @property
    def breaking(self) -> list[Change]:
        """The changes that break a promise to someone, except for the removal of versions."""
        return [
            each
            for each in self.changes
            if each.severity is Impact.BREAKING and each.kind not in _OF_VERSIONS
        ]

    @property
    def concerns_composites(self) -> bool:
        """Whether it must be tried on the composites that exist."""
        return any(
            each.kind in _MOVES or any(audience is not Audience.OPERATORS for audience in each.effects)
            for each in self.changes
        )


@dataclass(frozen=True, slots=True)
class FailedRehearsal:
    """An attempt to try an update on the composites that came to no result."""

    problem: str
    at: datetime
    next: datetime
    """Before this, there is no other attempt."""
    passing: bool
    """Whether another attempt may succeed although nobody changes anything."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What an update would do to each composite."""

    report: RehearsalReport | None = None
    """None if that is not known yet, or not needed."""
    at: datetime | None = None
    """When it was tried, if that may be some time ago."""
    failure: FailedRehearsal | None = None
    """The last attempt, if it failed."""
    again: bool = False
    """Whether an earlier attempt has allowed the update, which is no proof any more."""
    waits: bool = False
    """Whether an attempt begins as soon as those of other definitions leave room."""


class Rest(Enum):
    """Why nothing is sent for now to apply the CRD."""

    SETTLED = "an apply would change nothing"
    FAILED = "the last one has failed"
    UNDONE = "others overwrite the CRD"


@dataclass(frozen=True, slots=True)
class UpdateFacts:
    """What is known of an update when it is decided."""

    update: Update = field(default_factory=Update)
    rehearsal: Rehearsed = field(default_factory=Rehearsed)
    conversion: Mapping[str, Any] | None = None
    """The VersionConversion of the CRD."""
    migrations: Sequence[StorageMigration] | None = ()
    """Those of the CRD, if it may need one; None if they cannot be listed."""
    migration_failure: str = ""
    """Why the one that is needed could not be created."""
    revisions: Sequence[RevisionUse] = ()
    """The CompositionRevisions by which composites run; only looked for if a version goes."""
    rest: Rest | None = None
    """If set, nothing is sent, so that nothing has to be tried on composites."""
    advice: Advice = field(default_factory=Advice)
    """What could be better, if the CRD is accepted."""


def judge(
    judged: Acceptance, live: Mapping[str, Any] | None, conversion: Mapping[str, Any] | None
) -> tuple[Acceptance, Update]:
    """The definition's CRD with all errors that the API server would report, and what its update does.

    `live` is the CRD that it replaces; None if there is none, or only one that it must not replace.
    """
    made = judged.crd
    if made is None:
        return judged, Update()
    report = check_creation(made) if live is None else check_update(applied(live, made), live)
    judged = with_server_errors(judged, report)
    return judged, Update() if judged.refused else judge_update(made, live, conversion)


def judge_update(
    made: Mapping[str, Any], live: Mapping[str, Any] | None, conversion: Mapping[str, Any] | None
) -> Update:
    """Compare the definition's CRD with the live one; `conversion` is the VersionConversion of that name."""
    after = made if live is None else applied(live, made)
    if live is not None and after["spec"] == live["spec"]:
        # Also if it is too large to be compared.
        return Update()
    try:
        comparison = compare_served_versions(made) if live is None else compare(live, after)
    except NotComparable as error:
        return Update(problem=str(error))
    if not comparison.complete:
        return Update(problem="the CRD is too large to compare")
    if live is not None and not comparison.changes:
        # Whatever else is wrong, such as with the rules, is no fault of the definition.
        return Update()
    unconverted = [each for each in comparison.changes if each.kind in _UNCONVERTED]
    try:
        rules = _rules(conversion, live, after, needed=bool(unconverted))
        proposal = _proposal(after) if unconverted and not rules.exist else ""
    except UnreadableDefinition as error:
        return Update(problem=str(error))
    return Update("", _others(comparison) if live is not None else (), unconverted, rules, proposal)


def resting(facts: UpdateFacts, rest: Rest) -> UpdateFacts:
    """The facts while nothing is sent: what an update would do to composites does not matter."""
    update = facts.update
    if rest is Rest.SETTLED:
        # What is different belongs to others, or waits for a conversion.
        update = Update(rules=replace(update.rules, errors=()))
    else:
        update = replace(update, changes=())
    return replace(facts, update=update, rest=rest)


def converts(conversion: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether the VersionConversion, in its present state, converts the CRD in its present state."""
    try:
        found = VersionConversion.model_validate(conversion)
    except ValidationError:
        return False
    status = found.status
    return (
        holder(live, serving_address(conversion)) is ConversionOwner.OURS
        and status.observed_generation == status.served_generation == found.metadata.generation
        and status.definition_generation == live["metadata"].get("generation")
        and any(each.type == READY and each.status == "True" for each in status.conditions)
    )


def _others(comparison: Comparison) -> list[Change]:
    return [
        each
        for each in comparison.changes
        if each.severity is not Impact.SAFE and each.kind not in _UNCONVERTED
    ]


def _rules(
    conversion: Mapping[str, Any] | None,
    live: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    *,
    needed: bool,
) -> Rules:
    """The rules; without any effect if another webhook converts, or if they are not needed."""
    if conversion is None:
        return Rules()
    serve = False
    untold: tuple[str, ...] = ()
    if live is not None and (conversion.get("status") or {}).get("servedGeneration"):
        address = serving_address(conversion)
        owner = holder(live, address)
        if owner is ConversionOwner.OTHER and address == WebhookAddress():
            # If it is ours after all, a new version must not be served before the rules convert it.
            untold = (_UNTOLD,)
        serve = owner is ConversionOwner.OURS
    if not serve and not needed and not untold:
        return Rules(True)
    try:
        spec = VersionConversionSpec.model_validate(conversion.get("spec"))
    except ValidationError as error:
        return Rules(True, [described(error)])
    if spec.mode != "Execute":
        return Rules(True, ["spec.mode is Plan, so that its rules convert nothing; set it to Execute"])
    made = _compiled(spec, after)
    before = _compiled(spec, live) if live is not None and serve else None
    return Rules(
        True,
        untold or (made if isinstance(made, list) else ()),
        before if isinstance(before, Conversion) else None,
        made if isinstance(made, Conversion) else None,
    )


def _compiled(spec: VersionConversionSpec, document: Mapping[str, Any]) -> Conversion | list[str] | None:
    """The rules for the versions that a CRD has; None if it has only one. Raises UnreadableDefinition."""
    schemas = schemas_of(document)
    if len(schemas) < 2:
        return None
    kept = [each for each in spec.spokes if each.version in schemas]
    made = compile_conversion(spec.model_copy(update={"spokes": kept}), schemas)
    return made if isinstance(made, Conversion) else [str(each) for each in made]


def _proposal(document: Mapping[str, Any]) -> str:
    """A VersionConversion whose hub is the storage version, with the likeliest rule for each difference.

    In one line: messages have no line breaks.
    """
    spec, schemas = document["spec"], schemas_of(document)
    hub = next(each["name"] for each in spec["versions"] if each["storage"])
    resource = {"group": spec["group"], "resource": spec["names"]["plural"]}
    spokes = []
    for version in schemas:
        if version == hub:
            continue
        pair = {each: schemas[each] for each in (hub, version)}
        empty = {"resource": resource, "hub": hub, "spokes": [{"version": version}]}
        made = compile_conversion(VersionConversionSpec.model_validate(empty), pair)
        found = [] if isinstance(made, Conversion) else [each.proposals for each in made]
        rules = ", ".join(dict.fromkeys(each[0] for each in found if each))
        spokes.append(f"{{version: {in_yaml(version)}, rules: [{rules}]}}")
    return (
        f"{{apiVersion: {API_VERSION}, kind: {VersionConversion.__name__}, "
        f"metadata: {{name: {in_yaml(document['metadata']['name'])}}}, "
        f"spec: {{resource: {{group: {in_yaml(spec['group'])}, resource: {in_yaml(resource['resource'])}}}, "
        f"hub: {in_yaml(hub)}, spokes: [{', '.join(spokes)}]}}}}"
    )
