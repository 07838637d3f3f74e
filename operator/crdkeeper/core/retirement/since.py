"""Since when a version may have been out of use, for whoever has not watched: from the CRD alone."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from crdkeeper.apiserver.definitions.facts import spec_changed_at


def versions_changed_at(crd: Mapping[str, Any]) -> datetime | None:
    """No earlier than the last change of spec.versions, so no earlier than the deprecation of a version.

    By the managers of spec.versions, whose entries also get the time of their other changes; if there are
    none, by all changes of spec. None if managedFields were removed.
    """
    entries = [
        entry
        for entry in crd["metadata"].get("managedFields") or ()
        if "f:versions" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    return spec_changed_at({"managedFields": entries}) or spec_changed_at(crd["metadata"])
