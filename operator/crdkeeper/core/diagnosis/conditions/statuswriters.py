"""StatusWritersReady: does what controllers write to status arrive, and through the right door?

Only the authors of the CRD and of its controller can mend it, so errors do not affect Ready.
"""

from dataclasses import dataclass

from crdkeeper.api.meta import format_time
from crdkeeper.apiserver.definitions.facts import DefinitionFacts
from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.conversionfailures import essence
from crdkeeper.core.diagnosis.probes import PERMIT, ProbeTrouble, not_permitted
from crdkeeper.core.diagnosis.statuswriters import StatusWriter, StatusWriters, Writers
from crdkeeper.core.diagnosis.subresourcefacts import DeclaredSubresources
from crdkeeper.core.diagnosis.verdict import Reason, Verdict
from crdkeeper.core.text import count

_TYPE = "StatusWritersReady"
NO_STATUS = Reason(_TYPE, "True", "NoStatus", "No served version has a status.")
IN_ORDER = Reason(
    _TYPE,
    "True",
    "StatusWritten",
    "managedFields of the first 500 objects show no controller's status that was written only through the "
    "main resource. Conditions, an observedGeneration and the fields that /scale reads count as a "
    "controller's; so do other fields of a manager that owns nothing else of the object but metadata.",
)
BEFORE_SUBRESOURCE = Reason(
    _TYPE,
    "True",
    "WrittenBeforeSubresource",
    "The status of objects was last written through the main resource, before the version had the status "
    "subresource. Since then, nothing has shown whether its controller writes to /status.",
    "Check that the controller is of a release that belongs to this CRD.",
)
PENDING = Reason(_TYPE, "Unknown", "Pending", "The objects' managedFields have not been read yet.")
NOT_PERMITTED = Reason(
    _TYPE,
    "Unknown",
    "NotPermitted",
    "crdkeeper is not allowed to list the objects, so the writers of status are unknown.",
    PERMIT,
)
NOT_ASKED = Reason(
    _TYPE,
    "Unknown",
    "APIServerUnavailable",
    "The objects could not be listed.",
    "Read the message. crdkeeper tries again.",
)
WRITES_IGNORED = Reason(
    _TYPE,
    "False",
    "StatusWritesIgnored",
    "The version has the status subresource, but the status of objects was last written through the main "
    "resource, and has not followed the last change of spec. The API server ignores a status that is written "
    "there, without an error.",
    "Use a release of the controller that writes to /status, with the permission for it; or check that the "
    "controller is running.",
)
NO_SUBRESOURCE = Reason(
    _TYPE,
    "False",
    "NoStatusSubresource",
    "A controller writes into status, and the version has no status subresource: each change of status "
    "increases metadata.generation, so observedGeneration never reaches it, and whoever may write spec may "
    "forge status.",
    "The author of the CRD can add the status subresource, in the release in which the controller begins to "
    "write to /status.",
)


@dataclass(frozen=True, slots=True)
class StatusWritersFacts:
    """All facts that StatusWritersReady depends on."""

    definition: DefinitionFacts
    declared: DeclaredSubresources
    found: StatusWriters | None
    """None before the first probe, and if no version has a status."""


def judge(facts: StatusWritersFacts) -> Verdict:
    """The condition. What was found counts also if not all objects could be read."""
    definition, found = facts.definition, facts.found
    if not facts.declared.stateful:
        return _verdict(NO_STATUS, "No served version has a status.")
    if found is None:
        return _verdict(PENDING, "No objects' managedFields have been read yet.")
    if found.ignored.objects:
        return _verdict(WRITES_IGNORED, _written("has not followed spec", found.ignored, found))
    if found.without.objects:
        bare = ", ".join(each for each in definition.served_versions if each not in facts.declared.status)
        said = _written("was written through the main resource", found.without, found)
        return _verdict(NO_SUBRESOURCE, f"There is no status subresource at {bare}.", said)
    if found.failure is not None and found.failure.trouble is ProbeTrouble.FORBIDDEN:
        return _verdict(NOT_PERMITTED, not_permitted(definition, found.failure))
    if found.failure is not None:
        return _verdict(
            NOT_ASKED, f"{definition.name} could not be listed: {essence(found.failure.message)}."
        )
    if found.before.objects:
        return _verdict(BEFORE_SUBRESOURCE, _written("was last written there", found.before, found))
    # Without the number of objects, which would have the report written again whenever it changes.
    read = "all objects" if found.complete else f"the first {count(found.objects, 'object')}"
    return _verdict(
        IN_ORDER,
        f"managedFields of {read} show none of these as written only through the main resource: conditions, "
        "an observedGeneration, the fields that /scale reads, or a status whose manager owns nothing else.",
    )


def _read(found: StatusWriters) -> str:
    read = count(found.objects, "object")
    return read if found.complete else f"the first {read}"


def _written(what: str, writers: Writers, found: StatusWriters) -> str:
    shown = "; ".join(map(_writer, writers.shown))
    more = f"; and {writers.total - len(writers.shown)} more" if writers.total > len(writers.shown) else ""
    return f"The status of {writers.objects} of {_read(found)} {what}. Written by {shown}{more}."


def _writer(writer: StatusWriter) -> str:
    last = f", which last wrote at {format_time(writer.last)}" if writer.last else ""
    how = f"{writer.operation}, for example {', '.join(writer.examples)}"
    return f'"{writer.manager}" at {writer.version} ({how}){last}'


def _verdict(reason: Reason, *sentences: str) -> Verdict:
    return Verdict(reason, " ".join(filter(None, (*sentences, reason.remedy))))


CONDITION = ConditionType(
    _TYPE,
    lambda facts: judge(
        StatusWritersFacts(facts.seen.definition, facts.assessment.subresources, facts.live.statuswriters)
    ),
    reasons=(
        NO_STATUS,
        IN_ORDER,
        BEFORE_SUBRESOURCE,
        PENDING,
        NOT_PERMITTED,
        NOT_ASKED,
        WRITES_IGNORED,
        NO_SUBRESOURCE,
    ),
    assessed=True,
    fact="statuswriters",
)
