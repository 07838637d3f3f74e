"""What Kopf does with each event of a CRD besides calling the handler."""

from typing import Any, cast

import kopf
import pytest

from crdkeeper.handlers import Latest, operator_settings

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


def event(type_: str | None, uid: str, version: str) -> kopf.RawEvent:
    metadata = {"name": "p", "uid": uid, "resourceVersion": version}
    return cast(kopf.RawEvent, {"type": type_, "object": {"metadata": metadata}})


@pytest.mark.parametrize(
    ("events", "accepted"),
    [
        ([("ADDED", "a", "5"), ("MODIFIED", "a", "6"), ("DELETED", "a", "7"), ("ADDED", "b", "8")], "yyyy"),
        # Kopf passes them on in the order of each uid.
        ([("ADDED", "a", "5"), ("ADDED", "b", "8"), ("DELETED", "a", "7"), ("MODIFIED", "b", "9")], "yyny"),
        ([("ADDED", "a", "5"), ("ADDED", "b", "8"), ("MODIFIED", "a", "6"), ("DELETED", "a", "7")], "yynn"),
        ([("ADDED", "b", "8"), ("DELETED", "b", "9"), ("ADDED", "c", "10")], "yyy"),
        # What is listed is there, also after etcd was restored.
        ([(None, "b", "80"), (None, "a", "5"), ("MODIFIED", "a", "6")], "yyy"),
        ([(None, "b", "80"), ("MODIFIED", "b", "6")], "yy"),
    ],
)
def test_late_events_of_what_had_the_name_before(
    events: list[tuple[str | None, str, str]], accepted: str
) -> None:
    latest = Latest()
    assert "".join("ny"[latest.accepts(event(*each), "p")] for each in events) == accepted
