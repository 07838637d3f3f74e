"""kstatus' verdict on an object: Flux, Helm and Argo CD use it to tell whether applied objects are ready.

The rules of sigs.k8s.io/cli-utils/pkg/kstatus/status for kinds that it does not know.
"""

from collections.abc import Mapping
from typing import Any, Literal

Status = Literal["Terminating", "InProgress", "Failed", "Current"]


def status_of(document: Mapping[str, Any]) -> Status:
    """The status of an object as the API server returns it."""
    metadata, status = document["metadata"], document.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata.get("generation"):
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"
