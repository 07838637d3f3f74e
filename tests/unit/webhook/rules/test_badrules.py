"""Rules that cannot be used: what serves on, and what keeps a process out of the Service."""

from pathlib import Path

import pytest
import yaml

from crdkeeper.core.conversion.bundle import unpacked
from crdkeeper.webhook.rules.rulebook import RuleBook
from tests.unit.core.changes.builders import GROUP, NAME
from tests.unit.webhook.rules.rulefiles import KIND, WITHOUT_CRD, crd, look_until_settled, rules, started


def test_a_file_that_could_never_be_read_stays_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.symlink_to(path)
    book = started((tmp_path,))
    (tmp_path / "other.yaml").write_text("a: 1")
    look_until_settled(book)
    assert book.blocking == {str(path)}


def test_one_that_never_served_is_not_ready_because_something_else_cannot_be_read(file: Path) -> None:
    folder, hidden = file.parent, file.parent.rename(file.parent.with_name("hidden"))
    folder.symlink_to(folder)
    book = started((folder,))
    assert book.blocking == {str(folder)}
    # Now it can be listed, but its file cannot be read.
    folder.unlink()
    hidden.rename(folder)
    file.unlink()
    file.symlink_to(file)
    look_until_settled(book)
    assert book.blocking == {str(file)}


@pytest.mark.parametrize("bad", ["{", WITHOUT_CRD], ids=["no YAML", "does not compile"])
def test_only_what_is_bad_since_the_start_blocks(file: Path, book: RuleBook, bad: str) -> None:
    added = file.with_name("added.yaml")
    added.write_text(bad)
    look_until_settled(book)
    assert (list(book.conversions), len(book.problems), book.blocking) == ([NAME], 1, set())
    again = started((file.parent,))
    assert (list(again.conversions), again.blocking) == ([NAME], set(book.problems))
    added.write_text("")
    look_until_settled(again)
    assert (again.problems, again.blocking) == ({}, set())
    added.write_text(bad)
    look_until_settled(again)
    assert (len(again.problems), again.blocking) == (1, set())


def test_a_pod_that_was_never_ready_waits_also_if_the_problem_changes_its_name(file: Path) -> None:
    bad = file.with_name("bad.yaml")
    bad.write_text("{")
    book = started((file.parent,))
    assert (list(book.conversions), book.blocking) == ([NAME], {str(bad)})
    for content in (WITHOUT_CRD, "{"):
        bad.write_text(content)
        look_until_settled(book)
        assert book.blocking == book.problems.keys() != set()
    bad.rename(bad.with_name("other.yaml"))
    look_until_settled(book)
    assert book.blocking == book.problems.keys() != set()


def test_a_directory_that_was_empty_at_the_start_and_gets_bad_rules_blocks(tmp_path: Path) -> None:
    book = started((tmp_path,))
    assert (book.problems, book.blocking) == ({}, set())
    bad = tmp_path / "bad.yaml"
    bad.write_text("{")
    look_until_settled(book)
    assert book.blocking == {str(bad)}


@pytest.mark.parametrize(
    "odd",
    [
        "kind: CustomResourceDefinition\nmetadata: some.name",
        "kind: ThingList\nitems: 5",
        "kind: VersionConversion\nspec: 5",
    ],
)
def test_whatever_a_file_contains_the_others_serve(file: Path, book: RuleBook, odd: str) -> None:
    added = file.with_name("odd.yaml")
    added.write_text(odd)
    look_until_settled(book)
    assert (list(book.conversions), list(book.problems)) == ([NAME], [str(added)])


def test_whatever_a_crd_contains_the_others_serve(file: Path, book: RuleBook) -> None:
    other = f"gadgets.{GROUP}"
    content = yaml.safe_load(crd().removesuffix("\n---\n"))
    content["metadata"]["name"] = other
    for version in content["spec"]["versions"]:
        field = {"type": "array", "enum": ["DEEP"]}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"a": field}}}
    rule = {**KIND, "metadata": {"name": other}, "spec": yaml.safe_load(rules())["spec"]}
    rule["spec"]["resource"]["resource"] = "gadgets"
    before = book.conversions
    deep = "[" * 270 + "]" * 270  # more than orjson writes
    file.with_name("odd.yaml").write_text(yaml.safe_dump_all([content, rule]).replace("DEEP", deep))
    look_until_settled(book)
    assert (list(before), list(book.conversions), list(book.problems)) == ([NAME], [NAME], [other])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[" * 100_000, "line 1: nested deeper than 300 levels"),
        ("a: &a [*a]", "line 1: "),
        ("a: 1\nb: {", "line 3: not YAML: "),
        ("a: \xff", "not UTF-8"),
        ("a: \x00", "line 1: not YAML: "),
    ],
    ids=["deep", "endless", "cut", "bytes", "control"],
)
def test_a_file_that_cannot_be_read_is_named_with_the_line(
    file: Path, book: RuleBook, content: str, problem: str
) -> None:
    odd = file.with_name("odd.yaml")
    odd.write_bytes(content.encode("latin-1"))
    look_until_settled(book)
    assert list(book.problems) == [str(odd)]
    assert book.problems[str(odd)].startswith(problem)
    assert "\n" not in book.problems[str(odd)]


def test_yaml_means_the_same_as_for_kubectl(file: Path, book: RuleBook) -> None:
    """PyYAML takes these values for a number, a date that is none, and a text."""
    content = yaml.safe_load(crd().removesuffix("\n---\n"))
    fields = "{a: {type: string, enum: [16:9, 2001-99-99]}, b: {type: number, maximum: 1e3}}"
    for version in content["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": "SCHEMA"}
    text = yaml.safe_dump(content).replace("SCHEMA", f"{{type: object, properties: {fields}}}")
    file.write_text(f"{text}---\n{rules()}")
    look_until_settled(book)
    assert book.problems == {}
    found = unpacked(book.conversions[NAME].bundle).schemas["v1"]["properties"]
    assert (found["a"]["enum"], found["b"]["maximum"]) == (["16:9", "2001-99-99"], 1000)
