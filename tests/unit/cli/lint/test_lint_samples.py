"""`crdkeeper lint`: what the columns of a CRD show of the objects in the same files."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from crdkeeper.core.lint.annotation import ANNOTATION
from tests.unit.cli.lint.test_lint import lint
from tests.unit.core.lint.definitions import AGE, READY, TEXT, definition, schema, version

CONTENT = schema({"size": {**TEXT, "default": "small"}, "color": TEXT, "until": TEXT, "day": TEXT})
PRESERVED = {"x-kubernetes-preserve-unknown-fields": True}
COLUMNS = [
    {"name": "Size", "type": "string", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
    {"name": "Until", "type": "date", "jsonPath": ".spec.until"},
    READY,
    AGE,
]


def sample(name: str, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": name}}
    return {**head, "spec": spec}


def columns(folder: Path, *objects: dict[str, Any], annotations: dict[str, str] | None = None) -> list[str]:
    crd = definition(version(CONTENT, additionalPrinterColumns=COLUMNS))
    crd["metadata"]["annotations"] = annotations or {}
    (folder / "z.json").write_text(json.dumps(crd))
    for i, each in enumerate(objects):
        (folder / f"{i}.json").write_text(json.dumps(each))
    result = lint("-o", "json", "--all", str(folder))
    found = json.loads(result.stdout)["findings"]
    ids = ("column-empty", "column-invalid", "ignore-unused")
    return [f"{each['severity']} {each['message']}" for each in found if each["id"] in ids]


def test_nothing_is_said_without_objects(tmp_path: Path) -> None:
    assert columns(tmp_path) == []


def test_a_column_is_empty_for_all_objects(tmp_path: Path) -> None:
    objects = (sample("one", until="2026-01-02T03:04:05Z"), sample("two"))
    assert columns(tmp_path, *objects) == ["info column Color: is empty for all 2 objects in the files"]


def test_one_object_is_named(tmp_path: Path) -> None:
    assert columns(tmp_path, sample("one", color="red")) == ["info column Until: is empty for Widget one"]


def test_a_text_that_is_no_time(tmp_path: Path) -> None:
    objects = (sample("one", color="red", until="2026-01-02T03:04:05Z"), sample("two", until="tomorrow"))
    assert columns(tmp_path, *objects) == ["warning column Until: shows <invalid> for Widget two"]


def test_objects_with_a_status_are_asked_for_it(tmp_path: Path) -> None:
    one = {**sample("one", color="red", until="3000-01-02T03:04:05Z"), "status": {"conditions": []}}
    assert columns(tmp_path, one) == ["info column Ready: is empty for Widget one"]


@pytest.mark.parametrize("kind", ["Gadget", "Widget"])
def test_objects_of_another_kind_or_version_have_no_say(tmp_path: Path, kind: str) -> None:
    other = {**sample("one"), "kind": kind, "apiVersion": "example.com/v9"}
    assert columns(tmp_path, other) == []


def test_what_is_said_can_be_ignored(tmp_path: Path) -> None:
    marks = {ANNOTATION: "column-empty *: shown by the controller"}
    assert columns(tmp_path, sample("one", color="red"), annotations=marks) == []
    assert columns(tmp_path, annotations=marks) == []


def test_an_object_too_big_has_no_say(tmp_path: Path) -> None:
    assert columns(tmp_path, sample("one", big=[0] * 20_000)) == []


def test_paths_that_look_at_everything_are_given_up(tmp_path: Path) -> None:
    paths = [{"name": str(i), "type": "string", "jsonPath": "..a..a..a"} for i in range(200)]
    nested: Any = {"a": 1}
    for _ in range(60):
        nested = {"a": nested, "b": [nested]} if nested == {"a": 1} else {"a": nested}
    open_schema = {"type": "object", "properties": {"spec": {"type": "object", **PRESERVED}}}
    crd = definition(version(open_schema, additionalPrinterColumns=paths, subresources=None))
    (tmp_path / "crd.json").write_text(json.dumps(crd))
    for i in range(5):
        (tmp_path / f"{i}.json").write_text(json.dumps(sample(f"o{i}", **nested)))
    start = time.process_time()
    lint("-o", "json", str(tmp_path))
    assert time.process_time() - start < 20


def test_objects_that_are_none_do_no_harm(tmp_path: Path) -> None:
    unreadable = {**sample("one"), "metadata": []}
    strange: dict[str, Any] = {"apiVersion": "example.com/v1alpha1", "kind": "Widget", "spec": 5}
    nameless = {**sample("x", color="red", until="2026-01-02T03:04:05Z"), "metadata": None}
    assert columns(tmp_path, unreadable, strange) == [
        "info column Size: is empty for Widget without a name",
        "info column Color: is empty for Widget without a name",
        "info column Until: is empty for Widget without a name",
    ]
    assert columns(tmp_path, nameless, nameless) == []


@pytest.mark.parametrize(("format", "said"), [("date", True), ("duration", True), ("date-time", False)])
def test_a_format_that_no_column_of_dates_shows(tmp_path: Path, format: str, said: bool) -> None:
    content = schema({"day": {**TEXT, "format": format}})
    column = {"name": "Day", "type": "date", "jsonPath": ".spec.day"}
    file = tmp_path / "crd.json"
    file.write_text(json.dumps(definition(version(content, additionalPrinterColumns=[column, READY, AGE]))))
    result = json.loads(lint("-o", "json", str(file)).stdout)
    found = [each["message"] for each in result["findings"] if each["id"] == "column-invalid"]
    assert found == ["column Day: shows <invalid> for any value that the schema allows"] * said
