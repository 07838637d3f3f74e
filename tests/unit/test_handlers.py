"""What Kopf does with each event of a CRD besides calling the handler."""

from typing import Any, cast

import kopf

from crdkeeper.handlers import operator_settings

STORAGE = operator_settings().persistence.diffbase_storage


class Schema(dict[str, Any]):
    """A part of a CRD that nobody should copy: CRDs are large."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Schema":
        raise AssertionError("copied")


def body(**annotations: str) -> kopf.Body:
    metadata = {"name": "widgets.example.com", "annotations": annotations}
    return kopf.Body(cast(kopf.RawBody, {"metadata": metadata, "spec": Schema(), "status": {}}))


def test_an_event_copies_no_schema() -> None:
    assert not STORAGE.build(body=body())


def test_an_annotation_in_the_name_of_kopf_is_not_read() -> None:
    """Anyone who may annotate a CRD could make its events fail with text that is not JSON."""
    assert STORAGE.fetch(body=body(**{"crdkeeper.dev/last-handled-configuration": "{"})) is None
