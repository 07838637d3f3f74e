"""Short names, labels and annotations of a CRD that its definition does not have, but another program has.

Server-side apply leaves a field in place while it has another manager, such as the one who made the CRD
before it was adopted. Who applies a label or an annotation wants to have it, and gives it up by
another apply: it stays. Who has updated one has done so once.
Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""

from collections.abc import Mapping
from typing import Any, Final

_TEXTS: Final = ("labels", "annotations")


def given_up(live: Mapping[str, Any], made: Mapping[str, Any], manager: str) -> dict[str, dict[str, None]]:
    """What to merge into the metadata of the live CRD before `manager` applies the one that was made.

    Empty if the apply removes all that the definition gave up.
    """
    found: dict[str, dict[str, None]] = {}
    for texts in _TEXTS:
        present = set(live["metadata"].get(texts) or ())
        gone = present - set(made["metadata"].get(texts) or ())
        ours, updated, applied = set[str](), set[str](), set[str]()
        for entry in live["metadata"].get("managedFields") or ():
            fields = (((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get(f"f:{texts}")) or {}
            names = {each.removeprefix("f:") for each in fields}
            if entry.get("operation") != "Apply":
                updated |= names
            elif entry.get("manager") == manager:
                ours |= names
            else:
                applied |= names
        if both := (gone & ours & updated) - applied:
            found[texts] = dict.fromkeys(sorted(both))
    return found


def without_short_names(made: Mapping[str, Any], live: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The CRD to apply so that no short names are left which the definition does not have.

    The empty list is applied only if there are some. The API server does not store it, so each apply with it
    would count as a change by whoever applies, and be written if another manager has applied in between.
    """
    spec = made["spec"]
    if live is None or "shortNames" in spec["names"] or not live["spec"]["names"].get("shortNames"):
        return made
    return {**made, "spec": {**spec, "names": {**spec["names"], "shortNames": []}}}
