"""Of several kubeconfigs: which of them count, the current context, and entries with the same name."""

from collections.abc import Iterable, Mapping
from typing import Any


def has_content(written: bytes) -> bool:
    """Whether a kubeconfig has more than comments: if not, it counts for nothing.

    kubectl passes over such a file, as after `touch`, and the libraries refuse it.
    """
    return any(
        each.partition(b"#")[0].strip() not in (b"", b"---")  # which begins a document
        for each in written.splitlines()
    )


def current_context(files: Iterable[Mapping[str, Any]]) -> str | None:
    """The first that one of the files names; None if none does.

    kubectl takes that, and the libraries the last one, though of clusters, contexts and users with the same
    name they take the first, too.
    """
    named: Iterable[str | None] = (each.get("current-context") for each in files)
    return next(filter(None, named), None)


def user_of(files: Iterable[Mapping[str, Any]], name: str | None) -> dict[str, Any]:
    """What the first file with a user of that name says of it; empty if none does."""
    users = (each for file in files for each in file.get("users") or ())
    found: dict[str, Any] = next((each for each in users if each["name"] == name), {})
    return found.get("user") or {}
