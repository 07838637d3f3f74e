"""Compositions and their revisions, as the API server returns them."""

from typing import Any

from crdkeeper.core.revisions.content import NewRevision, SeenRevision, content_of, seen_revision, wanted

Json = Any


def composition(engine: str = "a", name: str = "small", **labels: str) -> Json:
    """A Composition whose content is this engine and these labels."""
    template = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"engine": engine},
    }
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "Composition",
        "metadata": {"name": name, "uid": "u", "generation": 1, "labels": labels},
        "spec": {
            "compositeTypeRef": {"apiVersion": "platform.example.com/v1", "kind": "Database"},
            "revisionHistoryLimit": 10,
            "resources": [{"name": "settings", "template": template}],
        },
    }


def stored(new: NewRevision, **metadata: Any) -> SeenRevision:
    """The revision once it is created."""
    made = new.to_object()
    known = {**made["metadata"], "uid": f"u-{new.name}", "resourceVersion": "1", **metadata}
    return seen_revision({**made, "metadata": known})


def history(*engines: str, name: str = "small") -> list[SeenRevision]:
    """The revisions of a Composition that had one content after the other."""
    found: list[SeenRevision] = []
    for each in engines:
        needed = wanted(content_of(composition(each, name)), found, 0)
        if isinstance(needed, NewRevision):
            found.append(stored(needed))
    return found
