"""Which context is the current one, if KUBECONFIG lists several files."""

from collections.abc import Iterable, Mapping
from typing import Any


def current_context(files: Iterable[Mapping[str, Any]]) -> str | None:
    """The first that one of the files names; None if none does.

    kubectl takes that, and the libraries the last one, though of clusters, contexts and users with the same
    name they take the first, too.
    """
    named: Iterable[str | None] = (each.get("current-context") for each in files)
    return next(filter(None, named), None)
