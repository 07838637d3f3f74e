"""The page about `crdkeeper lint` is up to date, and every rule is used."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from crdkeeper.apiserver.golang.durations import parse
from crdkeeper.apiserver.schema import rules
from crdkeeper.core.lint import registry
from crdkeeper.core.lint.conventions.values import DURATION_TEXT
from generate.lint import page

ROOT = Path(__file__).parents[3]


def test_the_page_is_fresh() -> None:
    said = "run `python -m generate.lint > docs/lint.md`"
    assert (ROOT / "docs" / "lint.md").read_text(encoding="utf-8") == page(), said


def test_every_rule_is_raised_somewhere() -> None:
    code = "".join(each.read_text(encoding="utf-8") for each in (ROOT / "operator").rglob("*.py"))
    raised = set(re.findall(r"\brules\.([A-Z_]{2,})", code))
    assert {name for name in vars(rules) if name.isupper() and not name.startswith("_")} == raised


def test_every_convention_is_raised_somewhere() -> None:
    lint = ROOT / "operator" / "crdkeeper" / "core" / "lint"
    declared = "".join(each.read_text(encoding="utf-8") for each in (lint / "conventions").glob("*.py"))
    names = set(re.findall(r"^([A-Z0-9_]+) = (?:error|warning|info)\(", declared, re.MULTILINE))
    assert len(names) == len(registry.all_conventions()), "two conventions have one id"
    files = [each for each in (ROOT / "operator").rglob("*.py") if each.parent.name != "conventions"]
    code = "".join(each.read_text(encoding="utf-8") for each in files)
    assert {name for name in names if not re.search(rf"\b{name}\b", code)} == set()


def test_no_id_means_two_things() -> None:
    servers = {each.id for each in rules.all_rules()}
    assert servers.isdisjoint(each.id for each in registry.all_conventions())


def test_what_is_said_is_sentences() -> None:
    for each in registry.all_conventions():
        assert each.why[0].isupper() or each.why.startswith(("kubectl", "etcd", "null", "status", "`"))
        assert each.why.endswith((".", "`")), each.id
        assert each.remedy.endswith("."), each.id


def _with_another_severity() -> Iterator[str]:
    """The names passed to a call that passes a severity too: those of conventions and of others."""
    for file in (ROOT / "operator" / "crdkeeper" / "core" / "lint").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and any(each.arg == "severity" for each in node.keywords):
                yield from (each.id for each in node.args if isinstance(each, ast.Name))


def test_the_page_says_when_the_severity_is_another() -> None:
    conventions = ROOT / "operator" / "crdkeeper" / "core" / "lint" / "conventions"
    code = "".join(each.read_text(encoding="utf-8") for each in conventions.glob("*.py"))
    ids = dict(re.findall(r'^([A-Z0-9_]+) = \w+\(\s*_GROUP,\s*"([^"]+)"', code, re.MULTILINE))
    varying = {ids[each] for each in _with_another_severity() if each in ids}
    assert varying == {each.id for each in registry.all_conventions() if each.otherwise}
    for each in registry.all_conventions():
        assert f"### {each.id}\n\n*{each.severity.value}" in page()
        assert not each.otherwise or f"; {each.otherwise}*" in page()


@pytest.mark.parametrize("word", ["info where", "only info", "is a warning", "severity", "is info"])
def test_users_are_not_told_of_severities(word: str) -> None:
    for each in registry.all_conventions():
        assert word not in f"{each.why} {each.remedy}".lower(), each.id


@pytest.mark.parametrize(
    "text",
    [
        *("0", "+0", "0s", "1h30m", "-1.5h", "2h45m", ".5s", "1.s", "1m0.1s", "+300ms"),
        *("5us", "5\u00b5s", "5\u03bcs", "5ns"),
    ],
)
def test_the_pattern_for_durations_takes_those_of_go(text: str) -> None:
    assert parse(text) is not None
    assert re.search(_duration_pattern(), text)


@pytest.mark.parametrize("text", ["", "5", "00", "s", ".s", "1h 2m", "1d", "P1D", "--1s", "1h!", "!1h", "1H"])
def test_the_pattern_for_durations_takes_no_others(text: str) -> None:
    assert parse(text) is None
    assert not re.search(_duration_pattern(), text)


def _duration_pattern() -> str:
    (found,) = re.findall(r"`(\^\S+\$)`", DURATION_TEXT.remedy)
    return str(found)
