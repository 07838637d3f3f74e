"""Names that two CRDs of one run claim."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.lint.test_lint import GOOD, lint
from tests.unit.cli.lint.test_lint_conventions import line_of

OTHER = GOOD.replace("widgets.example.com", "gadgets.example.com").replace(
    "plural: widgets", "plural: gadgets"
)
"""Its kind is that of the first one, too."""


def test_names_that_two_claim(tmp_path: Path) -> None:
    elsewhere = GOOD.replace("example.com", "example.org")
    for name, text in (("a", GOOD), ("b", OTHER), ("c", elsewhere), ("d", GOOD)):
        (tmp_path / f"{name}.yaml").write_text(text)
    result = lint("-f", str(tmp_path))
    assert result.exit_code == 1
    line = line_of(OTHER, "kind: Widget")
    assert result.stdout.splitlines()[0] == (
        f"{tmp_path}/b.yaml:{line}:5: error[names-conflict]: spec.names.kind: Widget is already used by "
        f"widgets.example.com ({tmp_path}/a.yaml)"
    )
    assert "1 error" in result.stderr


def conflicts(tmp_path: Path, first: str, second: str) -> list[tuple[str, str, int]]:
    """The field, the message and the line of each conflict of two CRDs with these names beside the plural."""
    for name, text, names in (("a", GOOD, first), ("b", OTHER, second)):
        (tmp_path / f"{name}.yaml").write_text(text.replace("kind: Widget", names))
    found = json.loads(lint("-o", "json", str(tmp_path)).stdout)["findings"]
    return [
        (each["field"].removeprefix("spec.names."), each["message"], each["line"])
        for each in found
        if each["id"] == "names-conflict"
    ]


@pytest.mark.parametrize(
    ("first", "second", "field", "name", "line"),
    [
        ("kind: Widget", "kind: Gadget\n    shortNames: [gd, widgets]", "shortNames[1]", "widgets", 11),
        ("kind: Widget", "kind: Gadget\n    shortNames: [widget]", "shortNames[0]", "widget", 11),
        ("kind: Widget\n    shortNames: [gadget]", "kind: Gadget", "singular", "gadget (by default)", 8),
        ("kind: Widget", "kind: WidgetList\n    listKind: Some", "kind", "WidgetList", 10),
        ("kind: GadgetList\n    listKind: Some", "kind: Gadget", "listKind", "GadgetList (by default)", 8),
        ("kind: Widget\n    singular: ''\n    listKind: ''", "kind: Widget", "kind", "Widget", 10),
    ],
)
def test_names_are_compared_with_those_that_the_api_server_adds(
    tmp_path: Path, first: str, second: str, field: str, name: str, line: int
) -> None:
    message = f"{name} is already used by widgets.example.com ({tmp_path}/a.yaml)"
    assert conflicts(tmp_path, first, second) == [(field, message, line)]


def test_what_is_written_must_be_changed_beside_the_kind(tmp_path: Path) -> None:
    written = "kind: Widget\n    singular: widget\n    listKind: WidgetList"
    found = conflicts(tmp_path, "kind: Widget", written)
    assert [field for field, _, _ in found] == ["kind", "singular", "listKind"]


def test_names_that_are_empty_are_none(tmp_path: Path) -> None:
    empty = "\n    singular: ''\n    listKind: ''\n    shortNames: ['']"
    assert conflicts(tmp_path, f"kind: Widget{empty}", f"kind: Gadget{empty}") == []


COMMENT = "# crdkeeper:ignore=names-conflict Only one of them is installed."
LINE = "lint.crdkeeper.dev/ignore: 'names-conflict spec.names.kind: Only one of them is installed.'"


@pytest.mark.parametrize(
    "text",
    [
        OTHER.replace("kind: Widget", f"kind: Widget {COMMENT}"),
        OTHER.replace("metadata:\n", f"metadata:\n  annotations:\n    {LINE}\n", 1),
    ],
    ids=["comment", "annotation"],
)
def test_a_conflict_can_be_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(text)
    result = lint("-o", "json", str(tmp_path))
    found = json.loads(result.stdout)
    assert (result.exit_code, found["findings"]) == (0, [])
    (ignored,) = found["ignored"]
    assert (ignored["id"], ignored["field"]) == ("names-conflict", "spec.names.kind")
    assert (ignored["reason"], ignored["line"]) == (
        "Only one of them is installed.",
        line_of(text, "kind: Widget"),
    )
    # A run without the other one does not show what that is for.
    assert json.loads(lint("-o", "json", str(tmp_path / "b.yaml")).stdout)["findings"] == []
