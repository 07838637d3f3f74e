"""Compares the output of `kubectl explain --recursive` with our prediction."""

import re
from collections.abc import Iterable, Iterator

from crdkeeper.apiserver.definitions.publishing.components import component_name, published_schemas
from crdkeeper.apiserver.definitions.publishing.explaining import (
    ExplainedField,
    NotExplained,
    explained_fields,
)
from crdkeeper.apiserver.definitions.publishing.implied import OpenAPI
from tests.cluster.definitions.lint.variants import Crd
from tests.controlplane.kubectl import Kubectl

_LINE = re.compile(r"( +)([^\t]+)\t<([^\n]*)>( -required-)?")
_FAILURE = "expected schema argument"


def said_of(crd: Crd, version: str) -> list[ExplainedField] | None:
    """Our prediction; None if kubectl fails."""
    spec = crd["spec"]
    name = component_name(spec["group"], version, spec["names"]["kind"])
    try:
        return list(explained_fields(published_schemas(crd, version, OpenAPI.V3)[name]))
    except NotExplained:
        return None


def printed_for(kubectl: Kubectl, crd: Crd, version: str) -> list[ExplainedField] | None:
    """kubectl's output, without the fields of metadata; None if it fails."""
    spec = crd["spec"]
    plural, api_version = spec["names"]["plural"], f"{spec['group']}/{version}"
    printed = kubectl("explain", plural, f"--api-version={api_version}", "--recursive", check=False)
    if _FAILURE in printed:
        return None
    return list(_without_metadata(_fields(printed)))


def _fields(printed: str) -> Iterator[ExplainedField]:
    _, begun, lines = printed.partition("\nFIELDS:\n")
    assert begun, printed
    for line in lines.splitlines():
        found = _LINE.fullmatch(line)
        if found:
            yield ExplainedField(len(found[1]) // 2, found[2], found[3], found[4] is not None)


def _without_metadata(fields: Iterable[ExplainedField]) -> Iterator[ExplainedField]:
    below: int | None = None
    for each in fields:
        if below is not None and each.level > below:
            continue
        below = each.level if each.type == "ObjectMeta" else None
        yield each
