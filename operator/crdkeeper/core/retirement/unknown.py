"""What a cluster cannot tell about the use of a version: said, so that no step seems safer than it is."""

from collections.abc import Sequence
from typing import Final

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.core.diagnosis.probes import Failure, ProbeTrouble
from crdkeeper.core.retirement.admission import list_rule

METRICS_RULE: Final = '{nonResourceURLs: ["/metrics"], verbs: ["get"]}'
_NO_TRACE: Final = (
    "managedFields show each manager's last change of an object: not writes that change nothing, and nothing "
    "of objects that are gone."
)
_WHO_READS: Final = (
    "The API server counts requests by version, but not whose. Its audit log does, which no API shows: "
    "`crdkeeper retire PLURAL.GROUP VERSION --audit-log FILE` reads it."
)
_AUDITED: Final = (
    "An audit log has the requests at one API server that its audit policy records, since the file began. "
    "Others are not known, nor are watches that have not ended."
)
_OWNED: Final = (
    "Objects of any kind may name the version in metadata.ownerReferences, and are not searched. Without the "
    "version, the garbage collector does not delete them with their owner, and a PodDisruptionBudget of pods "
    "among them may allow no evictions."
)
_ELSEWHERE: Final = (
    "Manifests and programs outside the cluster are not searched, nor objects of other kinds that name the "
    "version in fields of their own."
)
_OWN_READS: Final = (
    "A DefinitionReport reads an object at each served version when the CRD has a conversion webhook: these "
    "requests are counted, too."
)
_OWN_SCALE: Final = (
    "Until the version is deprecated, a DefinitionReport reads /scale of an object at it: these requests are "
    "counted, too."
)


def unknown(
    requests: Failure | None,
    answered: int,
    servers: int | None,
    *,
    converts: bool,
    scales: bool = False,
    hidden: Sequence[str] = (),
    audited: bool = False,
) -> tuple[str, ...]:
    """All that cannot be known, as sentences.

    `requests` says why metrics could not be read, `answered` how many API servers have shown theirs,
    `servers` how many there are (None: unknown), `converts` whether there is a conversion webhook,
    `scales` whether the version has /scale, `hidden` the kinds of admission rules, by plural, that may not be
    listed, and `audited` whether audit logs were read.
    """
    said = [_NO_TRACE]
    if requests is not None and requests.trouble is ProbeTrouble.FORBIDDEN:
        said.append(
            f"Whether anybody reads is unknown without the metrics. The missing rule: {METRICS_RULE}."
        )
    elif requests is not None:
        said.append(
            bounded(f"The metrics of an API server could not be read: {requests.message}", LINE_BYTES)
        )
    if answered and (servers is None or servers > answered):
        number = "an unknown number of" if servers is None else f"{servers:,}"
        have = "has" if answered == 1 else "have"
        said.append(
            "Each API server counts for itself, since it started: "
            f"{answered:,} of {number} API servers {have} answered. Requests at the others are not known."
        )
    elif answered > 1:
        said.append(f"Each of the {answered:,} API servers counts for itself, since it started.")
    elif answered:
        said.append("The API server counts since it started.")
    said.append(_AUDITED if audited else _WHO_READS)
    said += [*([_OWN_READS] if converts else []), *([_OWN_SCALE] if scales else [])]
    if hidden:
        said.append(
            f"Whether admission rules name the version is not known. The missing rule: {list_rule(hidden)}."
        )
    said += [_OWNED, _ELSEWHERE]
    return tuple(said)
