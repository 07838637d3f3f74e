"""VersionsCurrent: is a deprecated version served or written, and does any object name a removed one?

A version can be retired when nobody writes it any more. metadata.managedFields of the objects shows who does.
An entry with a version that the CRD no longer has makes every server-side apply to that object fail with 500
(kubernetes#111937).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from crdkeeper.api.meta import format_time
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.census import Census, ManagerUse
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.deprecation import DeprecatedVersion, needs_census
from crdkeeper.core.diagnosis.probes import PERMIT, ProbeTrouble, not_permitted
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import count

_TYPE = "VersionsCurrent"
CURRENT = Reason(
    _TYPE,
    "True",
    "Current",
    "No served version is deprecated, and no object's managedFields name a removed version.",
)
DEPRECATED_WRITTEN = Reason(
    _TYPE,
    "False",
    "DeprecatedVersionWritten",
    "A deprecated version is served, and the field managers in the message last wrote objects at it.",
    "Move those clients to a newer version. When none is left, set served: false.",
)
DEPRECATED_SERVED = Reason(
    _TYPE,
    "False",
    "DeprecatedVersionServed",
    "A deprecated version is served. No object's managedFields name it, or this is not known.",
    "Set served: false once no client reads it either. The API server's metric "
    "apiserver_requested_deprecated_apis and its audit log show who does.",
)
REMOVED_NAMED = Reason(
    _TYPE,
    "False",
    "RemovedVersionNamed",
    "metadata.managedFields of objects names a version that the CRD no longer has: every "
    "server-side apply to these objects fails with 500 (kubernetes#111937).",
    "Create a StorageMigration for this resource with managedFields: Retarget and verify: Full.",
    healthy=False,
)
PENDING = Reason(_TYPE, "Unknown", "Pending", "Not all objects' managedFields have been counted yet.")
NOT_PERMITTED = Reason(
    _TYPE,
    "Unknown",
    "NotPermitted",
    "crdkeeper is not allowed to list the objects, so the versions in their managedFields are unknown.",
    PERMIT,
)
NOT_COUNTED = Reason(
    _TYPE,
    "Unknown",
    "APIServerUnavailable",
    "The objects could not be listed completely.",
    "Read the message. crdkeeper tries again.",
)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class VersionsFacts:
    """All facts that VersionsCurrent depends on."""

    definition: DefinitionFacts
    deprecated: tuple[DeprecatedVersion, ...]
    census: Census | None
    """The last one taken; None before the first, and if none is needed."""


def judge(facts: VersionsFacts) -> Verdict:
    """The condition. What is broken comes before what is outdated."""
    definition, census = facts.definition, facts.census
    served = [each for each in facts.deprecated if each.served]
    known = {each.name for each in definition.versions}
    if census is not None and (gone := sorted(census.versions.keys() - known)):
        return _verdict(REMOVED_NAMED, *_removed(census, gone))
    if served:
        return _judge_deprecated(facts, served)
    if not needs_census(definition, facts.deprecated):
        return _verdict(CURRENT, f"{definition.storage_version} is the only version the CRD has ever had.")
    if census is None:
        return _verdict(PENDING, "The objects have not been counted yet.")
    if census.failure is not None:
        return _no_census(definition, census)
    if not census.complete:
        return _verdict(PENDING, f"{count(census.objects, 'object')} counted so far.")
    return _verdict(
        CURRENT,
        f"No served version is deprecated, and managedFields of {count(census.objects, 'object')} name "
        "only versions that the CRD has.",
    )


def _removed(census: Census, gone: list[str]) -> list[str]:
    affected = ", ".join(f"{version} by {count(census.versions[version], 'object')}" for version in gone)
    return [
        f"The CRD no longer has these versions, but managedFields name them: {affected}.",
        _writers(census, gone),
    ]


def _judge_deprecated(facts: VersionsFacts, served: list[DeprecatedVersion]) -> Verdict:
    names, census = [each.name for each in served], facts.census
    said = " ".join(
        f"{each.name} is deprecated and served" + (f' ("{each.warning}").' if each.warning else ".")
        for each in served
    )
    if census is not None and any(census.versions.get(name) for name in names):
        return _verdict(DEPRECATED_WRITTEN, said, _writers(census, names))
    if census is None:
        note = "The objects have not been counted yet."
    elif census.failure is not None:
        note = f"It is not known who writes it: {_no_census(facts.definition, census).message}"
    elif not census.complete:
        note = f"None of the first {count(census.objects, 'object')} names it in managedFields."
    else:
        note = f"None of {count(census.objects, 'object')} names it in managedFields."
    return _verdict(DEPRECATED_SERVED, said, note)


def _no_census(definition: DefinitionFacts, census: Census) -> Verdict:
    failure = census.failure
    assert failure is not None
    if failure.trouble is ProbeTrouble.FORBIDDEN:
        return _verdict(NOT_PERMITTED, not_permitted(definition, failure))
    said = f"The list ended after {count(census.objects, 'object')}: {essence(failure.message)}."
    return _verdict(NOT_COUNTED, said)


def _writers(census: Census, versions: Iterable[str]) -> str:
    uses = [each for each in census.uses if each.version in versions]
    shown = "; ".join(map(_writer, uses[:_SHOWN]))
    rest = len(uses) - _SHOWN
    return f"Written by {shown}{f'; and {rest} more' if rest > 0 else ''}." if uses else ""


def _writer(use: ManagerUse) -> str:
    how = f"{use.operation} of {use.subresource}" if use.subresource else use.operation
    last = f", last {format_time(use.last)}" if use.last else ""
    return (
        f'"{use.manager}" at {use.version} ({how}, {count(use.objects, "object")}{last}, for example '
        f"{', '.join(use.examples)})"
    )


def _verdict(reason: Reason, *sentences: str) -> Verdict:
    return Verdict(reason, " ".join(filter(None, (*sentences, reason.remedy))))


CONDITION = ConditionType(
    _TYPE,
    lambda facts: judge(VersionsFacts(facts.seen.definition, facts.seen.deprecated, facts.live.census)),
    reasons=(
        CURRENT,
        DEPRECATED_WRITTEN,
        DEPRECATED_SERVED,
        REMOVED_NAMED,
        PENDING,
        NOT_PERMITTED,
        NOT_COUNTED,
    ),
    fact="census",
)
