"""Composites that are lost because somebody deletes the CRD, which the API server does not refuse.

The status has their number from the beginning of the deletion until the CRD is gone: a composer that was
killed in between, or that did not run, still knows how many there were.
"""

from crdkeeper.api.compositeresourcedefinition import CompositeResourceDefinitionStatus
from crdkeeper.core.composer.plan import Gathered, is_controlled
from crdkeeper.core.text import count


def recount(status: CompositeResourceDefinitionStatus, gathered: Gathered) -> None:
    """Set how many composites there are, and how many were lost.

    In a deletion of the definition the CRD goes by the composer itself, and nothing is lost.
    """
    live, uid = gathered.live, gathered.definition.metadata.uid
    metadata = (live or {}).get("metadata") or {}
    kept = gathered.definition.metadata.deletion_timestamp is None
    if kept and status.crd_uid:
        if status.crd_uid != metadata.get("uid"):
            status.lost_composites += status.composites
            status.composites = 0
        elif "deletionTimestamp" in metadata:
            return
    if gathered.composites is not None:
        status.composites = gathered.composites
    status.crd_uid = metadata["uid"] if live is not None and is_controlled(live, uid) else ""


def described(number: int) -> str:
    """What to say about a loss."""
    was, them, they = ("was", "it", "it") if number == 1 else ("were", "them", "they")
    return (
        f"{count(number, 'composite')} {was} deleted with the CRD, which crdkeeper did not delete, and with "
        f"{them} the objects that {they} had, but for those with deletion: Orphan."
    )
