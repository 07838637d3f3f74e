"""NamesAccepted: whether the CRD's names are available, and if not, which CRD has them.

The server's condition (naming_controller.go) says which name is in use, but not by which CRD, and it reports
only the last of several conflicts.
"""

from collections.abc import Sequence

from crdkeeper.core.diagnosis.conditiontype import ConditionType
from crdkeeper.core.diagnosis.facts import SeenDefinition
from crdkeeper.core.diagnosis.nameconflicts import NameConflict, describe
from crdkeeper.core.diagnosis.verdict import Reason, Verdict

TYPE = "NamesAccepted"
_REMEDY = (
    "Change the name in spec.names, or delete the CRD that uses it. The API server then checks "
    "again automatically."
)


def _conflict(name: str, field: str) -> Reason:
    meaning = f"Another CRD of the API group has {field}."
    return Reason(TYPE, "False", name, meaning, _REMEDY, healthy=False)


NO_CONFLICTS = Reason(TYPE, "True", "NoConflicts", "No other CRD uses a name in spec.names.")
PLURAL_CONFLICT = _conflict("PluralConflict", "the plural name")
SINGULAR_CONFLICT = _conflict("SingularConflict", "the singular name")
SHORT_NAMES_CONFLICT = _conflict("ShortNamesConflict", "one of the short names")
KIND_CONFLICT = _conflict("KindConflict", "the kind")
LIST_KIND_CONFLICT = _conflict("ListKindConflict", "the list kind")
NAMES_REFUSED = Reason(
    TYPE,
    "False",
    "NamesRefused",
    "The API server does not accept a name, for a reason unknown to crdkeeper.",
    "Read the message: it quotes the API server.",
    healthy=False,
)
NOT_YET_PROCESSED = Reason(
    TYPE,
    "Unknown",
    "NotYetProcessed",
    "The API server's controllers have not processed the CRD's names yet.",
    "Wait a moment. If it persists, check the kube-apiserver log.",
    healthy=False,
)

_BY_SERVER_REASON = {
    each.name: each
    for each in (
        PLURAL_CONFLICT,
        SINGULAR_CONFLICT,
        SHORT_NAMES_CONFLICT,
        KIND_CONFLICT,
        LIST_KIND_CONFLICT,
    )
}


def judge(seen: SeenDefinition, conflicts: Sequence[NameConflict]) -> Verdict:
    """The verdict; `conflicts` come from the accepted names of all CRDs in the group."""
    found = seen.condition(TYPE)
    if found is None or found.status == "Unknown":
        return Verdict(NOT_YET_PROCESSED, f"{NOT_YET_PROCESSED.meaning} {NOT_YET_PROCESSED.remedy}")
    if found.status == "True":
        return Verdict(NO_CONFLICTS, NO_CONFLICTS.meaning)
    reason = _BY_SERVER_REASON.get(found.reason, NAMES_REFUSED)
    reported = "; ".join(map(describe, conflicts)) or f"{found.reason}: {found.message}"
    # Until it has been established, the CRD is not served at all; later it keeps its former names.
    served = (
        "It is still served under its former names." if seen.definition.established else "It is not served."
    )
    return Verdict(reason, f"{reported}. {served} {_REMEDY}")


CONDITION = ConditionType(
    TYPE,
    lambda facts: judge(facts.seen, facts.conflicts),
    reasons=(
        NO_CONFLICTS,
        PLURAL_CONFLICT,
        SINGULAR_CONFLICT,
        SHORT_NAMES_CONFLICT,
        KIND_CONFLICT,
        LIST_KIND_CONFLICT,
        NAMES_REFUSED,
        NOT_YET_PROCESSED,
    ),
)
