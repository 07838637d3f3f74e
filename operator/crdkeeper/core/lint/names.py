"""spec.names: what people type and what tools derive."""

import re
from collections.abc import Mapping
from typing import Any

from crdkeeper.core.lint.builtin_names import LONG_NAMES, SHORT_NAMES
from crdkeeper.core.lint.checkeddefinition import CheckedDefinition
from crdkeeper.core.lint.conventions.definition import CATEGORY_ALL, RESOURCE_NAMES, SHORT_NAME
from crdkeeper.core.lint.found import Findings, Steps
from crdkeeper.core.lint.severity import Severity

_KIND = re.compile("[A-Z][A-Za-z0-9]*")
_AT: Steps = ("spec", "names")


def check_names(definition: CheckedDefinition, found: Findings) -> None:
    """Report on kind, plural, singular, listKind, short names and categories."""
    names = definition.spec.get("names") or {}
    _check_derived(names, found)
    group = definition.spec.get("group", "")
    for i, short in enumerate(names.get("shortNames") or ()):
        taken = SHORT_NAMES.get(short) or LONG_NAMES.get(short)
        if taken and "." in group:
            message = f"`{short}` is already the name of Kubernetes' {taken}"
            found.add(SHORT_NAME, f"spec.names.shortNames[{i}]", (*_AT, "shortNames", i), message)
    categories = names.get("categories") or ()
    if "all" in categories:
        at = (*_AT, "categories", categories.index("all"))
        # An author who adds namespaced objects means that people delete them with the application.
        everywhere = definition.spec.get("scope") == "Cluster"
        message = "`kubectl delete all --all` deletes these objects too"
        if everywhere:
            message = "`kubectl delete all --all` in any namespace deletes these objects of the whole cluster"
        severity = None if everywhere else Severity.INFO
        found.add(CATEGORY_ALL, "spec.names.categories", at, message, severity=severity)


def _check_derived(names: Mapping[str, Any], found: Findings) -> None:
    kind, plural = names.get("kind") or "", names.get("plural") or ""
    if kind and not _KIND.fullmatch(kind):
        _report(found, "kind", f"{kind} is not UpperCamelCase")
    if "-" in plural:
        _report(found, "plural", f"{plural} has a hyphen, which no resource of Kubernetes has")
    singular = names.get("singular") or kind.lower()
    if singular != kind.lower():
        _report(found, "singular", f"{singular} is not {kind.lower()}, as the kind suggests")
    list_kind = names.get("listKind") or f"{kind}List"
    if list_kind != f"{kind}List":
        _report(found, "listKind", f"{list_kind} is not {kind}List, as the kind suggests")


def _report(found: Findings, key: str, message: str) -> None:
    found.add(RESOURCE_NAMES, f"spec.names.{key}", (*_AT, key), message)
