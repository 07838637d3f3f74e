"""Names that two CRDs of one run claim."""

from pathlib import Path

from tests.unit.cli.lint.test_lint import GOOD, lint
from tests.unit.cli.lint.test_lint_conventions import line_of


def test_names_that_two_claim(tmp_path: Path) -> None:
    other = GOOD.replace("widgets.example.com", "gadgets.example.com").replace(
        "plural: widgets", "plural: gadgets"
    )
    elsewhere = GOOD.replace("example.com", "example.org")
    for name, text in (("a", GOOD), ("b", other), ("c", elsewhere), ("d", GOOD)):
        (tmp_path / f"{name}.yaml").write_text(text)
    result = lint("-f", str(tmp_path))
    assert result.exit_code == 1
    line = line_of(other, "kind: Widget")
    assert result.stdout.splitlines()[0] == (
        f"{tmp_path}/b.yaml:{line}:5: error[names-conflict]: spec.names.kind: Widget is already used by "
        f"widgets.example.com ({tmp_path}/a.yaml)"
    )
    assert "1 error" in result.stderr


def test_a_short_name_that_is_anothers_plural(tmp_path: Path) -> None:
    other = (
        GOOD.replace("widgets.example.com", "gadgets.example.com")
        .replace("plural: widgets", "plural: gadgets\n    shortNames: [gd, widgets]")
        .replace("kind: Widget", "kind: Gadget")
    )
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(other)
    assert "spec.names.shortNames[1]: widgets is already used by" in lint("-f", str(tmp_path)).stdout
