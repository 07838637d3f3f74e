"""Everything that the API server decodes can be checked: thousands of variants raise nothing."""

import os

from crdkeeper.apiserver.definitions.create import decode
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.lint.check import check_conventions
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.variants import BASES, corpus, variants

# The long run of the comparison with the API server sets more.
COUNT = int(os.environ.get("CRDKEEPER_VARIANTS", "400"))


def test_nothing_is_raised() -> None:
    checked = 0
    for crd in drawn(variants(BASES + corpus()), COUNT, 1):
        decoded = decode(crd, Report())
        if decoded is None:
            continue
        checked += 1
        for each in check_conventions(decoded, crd):
            assert each.steps[: len(each.owner)] == each.owner
            assert each.message and each.field
    assert checked > COUNT * 0.5
