"""Marks in CRDs, by which the API server's answers show which of them has taken effect.

A new CRD has taken effect when it is served. A changed one is still served as it was until the API server has
noticed the change, which on a busy machine takes longer than the next request.
"""

import hashlib
from typing import Any, Final

import orjson

from tests.cluster.harness.customkind import CustomKind

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""The media type of the answers that show marks: descriptions of printer columns."""


class Marks:
    """The marks of the CRDs that one admin applies."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[bytes, str]] = {}

    def of(self, kind: CustomKind) -> tuple[dict[str, Any], str]:
        """The CRD with its mark. A new CRD has none, the same one again has the same, another one another."""
        body = kind.to_object()
        content = orjson.dumps(body["spec"])
        known, mark = self._known.get(kind.name, (content, ""))
        if known != content:
            mark = f"of {hashlib.sha256(content).hexdigest()[:16]}"
        self._known[kind.name] = content, mark
        for version in body["spec"]["versions"] if mark else ():
            version["additionalPrinterColumns"][0]["description"] = mark
        return body, mark
