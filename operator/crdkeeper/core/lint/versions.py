"""spec.versions as a whole: names, the stored one, deprecated ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from crdkeeper.apiserver.definitions.versionorder import preferred, priority
from crdkeeper.core.lint.checkeddefinition import CheckedDefinition
from crdkeeper.core.lint.convention import Convention
from crdkeeper.core.lint.conventions.definition import (
    DEPRECATION_TEXT,
    STORAGE_DEPRECATED,
    STORAGE_STABILITY,
    VERSION_STYLE,
)
from crdkeeper.core.lint.found import Findings, Steps

Version = Mapping[str, Any]


def check_versions(definition: CheckedDefinition, found: Findings) -> None:
    """Report on each version in relation to the others."""
    versions = definition.versions
    for i, version in enumerate(versions):
        name = version.get("name") or ""
        if name and priority(name) is None:
            _report(found, VERSION_STYLE, versions, i, "name", f"{name} is not of the form v1, v1beta1")
        if version.get("storage"):
            _check_stored(versions, i, found)
        if version.get("deprecated") and version.get("served") and not version.get("deprecationWarning"):
            _check_deprecated(versions, i, found)


def _check_stored(versions: Sequence[Version], i: int, found: Findings) -> None:
    stored = versions[i]
    if stored.get("deprecated"):
        if _best(versions) is None:
            # If all versions are deprecated, the whole kind is, and nothing replaces the version.
            return
        message = f"{stored.get('name')} is deprecated, and the version that is stored"
        _report(found, STORAGE_DEPRECATED, versions, i, "storage", message)
        return
    own = priority(stored.get("name") or "")
    better = _best(versions)
    if own is not None and better is not None and own[0] < (priority(better) or own)[0]:
        message = f"objects are stored at {stored.get('name')}, though {better} is served"
        _report(found, STORAGE_STABILITY, versions, i, "storage", message)


def _check_deprecated(versions: Sequence[Version], i: int, found: Findings) -> None:
    own, best = versions[i].get("name") or "", _best(versions)
    if best is not None and preferred((own, best), str) == best:
        return
    others = [each.get("name") or "" for j, each in enumerate(versions) if each.get("served") and j != i]
    if best is not None:
        reason = f"{best} ranks below it"
    elif others:
        reason = f"{preferred(others, str)} is deprecated, too"
    else:
        reason = "no other version is served"
    message = f"{own} is deprecated, and the automatic warning does not say what to use instead: {reason}"
    _report(found, DEPRECATION_TEXT, versions, i, "deprecated", message)


def _best(versions: Sequence[Version]) -> str | None:
    """The served version that clients should use."""
    names = [each.get("name") or "" for each in versions if each.get("served") and not each.get("deprecated")]
    return preferred(names, str)


def _report(
    found: Findings,
    convention: Convention,
    versions: Sequence[Version],
    i: int,
    key: str,
    message: str,
) -> None:
    steps: Steps = ("spec", "versions", i, key)
    found.add(convention, f"{versions[i].get('name') or i}:{key}", steps, message)
