"""How much is said of CRDs that are in use: where everything is a warning, nobody reads any."""

import os
from collections import Counter

import pytest

from crdkeeper.core.lint.linter import lint
from crdkeeper.core.lint.merging import merge
from crdkeeper.core.lint.severity import Severity
from tests.cluster.definitions.lint.variants import corpus

_MOST = 1.5
"""Warnings per CRD at the default level."""


@pytest.mark.skipif(not os.environ.get("CRDKEEPER_CORPUS"), reason="CRDKEEPER_CORPUS names no folder of CRDs")
def test_the_warnings_of_a_corpus_are_few() -> None:
    crds = [each for each in corpus() if (each.get("spec") or {}).get("versions")]
    assert crds
    counts = Counter(each.severity for crd in crds for each in merge(lint(crd)) if not each.ignored)
    assert counts[Severity.ERROR] == 0
    assert counts[Severity.WARNING] <= _MOST * len(crds)
