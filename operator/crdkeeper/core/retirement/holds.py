"""What a step would break: things in the cluster that name the version."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from crdkeeper.api.meta import DEFINITION_UID
from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.api.versionretirement import RetirementHold
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conversionfacts import VersionRead
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.probes import ProbeTrouble
from crdkeeper.core.retirement.evidence import HeldStep, Obstacle

MOST_HOLDS: Final = 50
MADE_ELSEWHERE: Final = "CompositeResourceDefinition"
"""The reason of what holds each change of the CRD, but not the migration of its objects."""
_WEBHOOK: Final = "ConversionWebhook"
_FORBIDDEN: Final = "NotPermitted"
_NOT_BY_WEBHOOK: Final = frozenset(
    (ProbeTrouble.FORBIDDEN, ProbeTrouble.BUSY, ProbeTrouble.EXPIRED, ProbeTrouble.SILENT)
)
"""What may come from the API server itself."""
_NAMES: Final = 3


@dataclass(frozen=True, slots=True)
class NamedKinds:
    """A Composition or CompositionRevision, reduced to the apiVersions that it names."""

    kind: str
    name: str
    composites: tuple[str, str]
    """apiVersion and kind of the composites."""
    others: frozenset[tuple[str, str]]
    """Those of templates and externalRefs."""


def named_kinds(found: Mapping[str, Any]) -> NamedKinds:
    """Reduce a Composition or CompositionRevision. Raises KeyError if it is none."""
    spec = found["spec"]
    of = spec["compositeTypeRef"]
    resources = [each for each in spec.get("resources") or () if isinstance(each, Mapping)]
    others = frozenset(
        (str(each[field].get("apiVersion")), str(each[field].get("kind")))
        for each in resources
        for field in ("template", "externalRef")
        if isinstance(each.get(field), Mapping)
    )
    return NamedKinds(str(found["kind"]), found["metadata"]["name"], (of["apiVersion"], of["kind"]), others)


def definition_holds(crd: Mapping[str, Any], version: str) -> Iterator[Obstacle]:
    """What the CRD itself shows."""
    name = crd["metadata"]["name"]
    if (crd["metadata"].get("annotations") or {}).get(DEFINITION_UID):
        yield _hold(
            "Deprecated",
            MADE_ELSEWHERE,
            name,
            f"The composer makes this CRD and puts back what others change. Change {version} in the "
            "CompositeResourceDefinition of the same name: each step is recognized when it is made there.",
        )


def conversion_holds(conversion: Mapping[str, Any] | None, version: str) -> Iterator[Obstacle]:
    """A VersionConversion that names the version, as stored."""
    spec = (conversion or {}).get("spec") or {}
    spokes = [each.get("version") for each in spec.get("spokes") or ()]
    if conversion is None or version not in (spec.get("hub"), *spokes):
        return
    name = conversion["metadata"]["name"]
    if spec.get("hub") == version:
        what = f"has {version} as its hub. Choose another hub, without a spoke for {version}"
    elif len(spokes) > 1:
        what = f"has {version} as a spoke. Remove the spoke; the rules in use stay until the version is gone"
    else:
        what = f"has {version} as its only spoke. Delete it, which is possible once {version} is not stored"
    yield _hold("Removed", "VersionConversion", name, f"VersionConversion {name} {what}.")


def composition_holds(
    named: Iterable[NamedKinds], definition: DefinitionFacts, version: str
) -> Iterator[Obstacle]:
    """Compositions and their revisions that read, make or stand for objects at the version."""
    kind = (f"{definition.group}/{version}", definition.kind)
    for each in named:
        if each.composites == kind:
            what, todo = "is for composites at", "in spec.compositeTypeRef.apiVersion"
        elif kind in each.others:
            what, todo = "makes or reads objects at", "in its resources"
        else:
            continue
        named_version = definition.storage_version
        change = (
            f"Name another version {todo}, such as {named_version}."
            if each.kind == "Composition"
            else "Let composites run by a revision that names another version, then delete this one."
        )
        yield _hold(
            "NotServed", "Composition", each.name, f"{each.kind} {each.name} {what} {version}. {change}"
        )


def webhook_holds(
    webhook: str, reads: Sequence[VersionRead], example: str, definition: DefinitionFacts, version: str
) -> Iterator[Obstacle]:
    """A conversion webhook by which an object could not be read at other versions than `version`.

    That it is not known holds, too: without the version, the others must be readable.
    """
    failed = [(each.version, each.failure) for each in reads if each.failure is not None]
    broken = [(at, why) for at, why in failed if why.trouble not in _NOT_BY_WEBHOOK]
    if not failed:
        return
    _, why = (broken or failed)[0]
    at = ", ".join(each for each, _ in (broken or failed)[:_NAMES])
    unread = f"{example} cannot be read at {at}"
    unknown = f"Whether the conversion {webhook} converts is not known"
    if broken:
        said = f"The conversion {webhook} does not convert: {unread} ({essence(why.message)}). Without "
        yield _hold(
            "NotServed", _WEBHOOK, webhook, f"{said}{version}, nobody could read it. Repair the webhook."
        )
    elif why.trouble is ProbeTrouble.FORBIDDEN:
        rule = f'{{apiGroups: ["{definition.group}"], resources: ["{definition.plural}"], verbs: ["get"]}}'
        yield _hold("NotServed", _FORBIDDEN, definition.name, f"{unknown}. The missing rule: {rule}.")
    else:
        said = f"{unknown}: {unread} ({why.message.rstrip('.')}). If that lasts, repair the webhook."
        yield _hold("NotServed", _WEBHOOK, webhook, said)


def hidden(plurals: Sequence[str], group: str, step: HeldStep) -> Obstacle:
    """What names the version cannot be known."""
    named = ", ".join(f'"{each}"' for each in plurals)
    return _hold(
        step,
        _FORBIDDEN,
        f"{plurals[0]}.{group}",
        f"Whether {' or '.join(plurals)} name the version is not known. The missing rule: "
        f'{{apiGroups: ["{group}"], resources: [{named}], verbs: ["get", "list"]}}.',
    )


def as_told(holds: Iterable[Obstacle], before: Iterable[RetirementHold]) -> tuple[Obstacle, ...]:
    """These holds, that of a conversion webhook with the text that a status already has for it.

    It may fail in other words each time, such as with a time or a port.
    """
    told = {each.name: each.message for each in before if each.reason == _WEBHOOK}
    return tuple(
        replace(each, message=told.get(each.name, each.message)) if each.reason == _WEBHOOK else each
        for each in holds
    )


def _hold(step: HeldStep, reason: str, name: str, message: str) -> Obstacle:
    return Obstacle(step, reason, name, bounded(message, LINE_BYTES))
