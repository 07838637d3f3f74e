"""An assessment does not repeat work whose result is already known."""

import os

from crdkeeper.apiserver.definitions.create import check_decoded, decode
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.core.diagnosis.structure import Structure, structure
from tests.cluster.definitions.lint.drawing import drawn
from tests.cluster.definitions.lint.variants import BASES, corpus, variants

COUNT = int(os.environ.get("CRDKEEPER_VARIANTS", "200"))


def test_what_the_api_server_accepts_is_structural() -> None:
    """So an assessment checks the structure only of other CRDs."""
    accepted = 0
    for crd in drawn(variants(BASES + corpus()), COUNT, 2):
        report = Report()
        decoded = decode(crd, report)
        if decoded is None:
            continue
        check_decoded(decoded, report)
        if not (report.violations or report.unchecked):
            accepted += 1
            assert structure(decoded) == Structure()
    assert accepted > COUNT * 0.1
