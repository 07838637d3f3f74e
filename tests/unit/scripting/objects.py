"""Migrations as an API server shows them to scripts."""

from typing import Any

NAME = "databases.example.com"


def migration(
    *conditions: dict[str, Any],
    version: int = 1,
    generation: int = 1,
    uid: str = "u1",
    ended: bool = False,
) -> dict[str, Any]:
    """A StorageMigration with these conditions; `ended` as set by its operator at the end."""
    status: dict[str, Any] = {"conditions": list(conditions), "observedGeneration": 1}
    if ended:
        status["completionTime"] = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "StorageMigration",
        "metadata": {
            "name": NAME,
            "uid": uid,
            "generation": generation,
            "resourceVersion": str(version),
        },
        "spec": {"resource": {"group": "example.com", "resource": "databases"}},
        "status": status,
    }


def condition(type_: str, status: str, reason: str = "Because", message: str = "So it is.") -> dict[str, Any]:
    """A condition about generation 1."""
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


RUNNING = condition("Ready", "Unknown", "Rewriting", "Objects are being rewritten.")
DONE = condition("Ready", "True", "Migrated", "All objects are proved.")
EXHAUSTED = condition("Ready", "False", "RetriesExhausted", "2 objects were refused.")
FORBIDDEN = condition("Ready", "False", "Forbidden", "Not permitted: patch databases.example.com.")
