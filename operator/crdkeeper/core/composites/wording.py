"""What is said of objects that are neither applied nor removed."""

from collections.abc import Mapping
from typing import Any

from crdkeeper.core.composites import reasons
from crdkeeper.core.composites.ownership import OUTLIVES, controller_of, outlives
from crdkeeper.core.diagnosis.verdict import Verdict
from crdkeeper.core.templates.namespaces import Identity
from crdkeeper.core.templates.rendered import RenderedResource


def why_unproved(identity: Identity) -> str:
    """Why an object is not deleted of which only the status says that it stays."""
    return (
        f"{identity} is listed with deletion: Orphan, but neither the object nor a CompositionRevision "
        "in use says so. Delete it, or give it the annotation "
        f"{OUTLIVES} with the composite's uid, to keep it."
    )


def not_rendered(resource: RenderedResource) -> Verdict:
    """Why nothing of a resource changes that has failed to be rendered."""
    column = f": column {resource.column}" if resource.column is not None else ""
    said = f"{resource.name}: {resource.path}{column}: {resource.why}"
    hint = f" {resource.hint}" if resource.hint else ""
    return Verdict(reasons.RENDERING_FAILED, f"{said.rstrip('.')}.{hint}")


def not_ours(identity: Identity, live: Mapping[str, Any]) -> Verdict:
    """Why an object of somebody else is left alone."""
    controller = controller_of(live)
    whose = f"belongs to {controller}" if controller else "is not the composite's"
    kept = (
        ""
        if controller or not outlives(live)
        else f" It can be adopted once it has no annotation {OUTLIVES}, by which a composite has left it."
    )
    said = f"{identity} exists already, and {whose}. {reasons.NOT_OURS.remedy}{kept}"
    return Verdict(reasons.NOT_OURS, said)
