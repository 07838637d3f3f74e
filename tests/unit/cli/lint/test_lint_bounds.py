"""`crdkeeper lint`: for large CRDs, work and output grow with what is reported, not with repetition."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from crdkeeper.apiserver.jsonpath.evaluation import first
from crdkeeper.apiserver.objects import table
from crdkeeper.cli.lint import jsonoutput, sarifoutput
from crdkeeper.cli.lint.baseline import AcceptedFindings
from crdkeeper.cli.lint.findings import LintFinding
from crdkeeper.cli.lint.textoutput import MOST_LINES
from crdkeeper.core.documents import yamldocument
from crdkeeper.core.documents.yamldocument import Document, Position
from crdkeeper.core.lint import linter, place
from crdkeeper.core.lint.place import SchemaPlace
from crdkeeper.core.lint.references import References
from crdkeeper.core.lint.registry import all_conventions
from crdkeeper.core.lint.severity import Severity
from tests.unit.cli.lint.test_lint import lint
from tests.unit.core.lint.definitions import TEXT, definition, schema, version

FIELDS = {f"field{i}": {"type": "string"} for i in range(300)}
"""Each has a finding of severity info: it lacks a description."""


def written(folder: Path, *documents: Any) -> str:
    file = folder / "crds.yaml"
    file.write_text("\n---\n".join(map(json.dumps, documents)))
    return str(file)


def test_hidden_findings_are_neither_named_nor_located(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    find, path = Document.find, vars(SchemaPlace)["path"].fget

    def counted_find(self: Document, steps: tuple[str | int, ...]) -> Position:
        calls["find"] += 1
        return find(self, steps)

    def counted_path(self: SchemaPlace) -> str:
        calls["path"] += 1
        return str(path(self))

    monkeypatch.setattr(Document, "find", counted_find)
    monkeypatch.setattr(SchemaPlace, "path", property(counted_path))
    result = lint(written(tmp_path, definition(version(schema(FIELDS)))))
    assert " info hidden" in result.stderr
    assert int(result.stderr.split(" info hidden")[0].split()[-1]) > 300
    assert calls["find"] < 20
    assert calls["path"] < 20


def test_the_neighbours_of_secrets_are_judged_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def counted(schema: Any) -> References:
        seen.append(schema)
        return References(schema)

    monkeypatch.setattr(place, "References", counted)
    users = {f"user{i}": {**TEXT, "type": "object", "properties": {"password": TEXT}} for i in range(50)}
    spec = {**users, **{f"user{i}Password": TEXT for i in range(50)}}
    found = [each for each in linter.lint(definition(version(schema(spec)))) if each.rule.id == "secret-text"]
    assert len(found) == 100
    # The neighbors of each user, those of spec, and those of the root.
    assert len(seen) == 52


def test_a_position_is_made_once_for_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    (document,) = yamldocument.documents("a: {b: {c: {d: {e: 1}}}}")
    made: list[Any] = []
    position = yamldocument._position

    def counted(mark: Any) -> Position:
        made.append(mark)
        return position(mark)

    monkeypatch.setattr(yamldocument, "_position", counted)
    assert document.find(("a", "b", "c", "d", "e")) == Position(1, 17)
    assert len(made) == 1


def test_errors_of_one_rule_are_printed_up_to_a_number(tmp_path: Path) -> None:
    count = MOST_LINES + 100
    bad = {f"field{i}": {"type": f"bogus{i}"} for i in range(count)}
    file = written(tmp_path, definition(version(schema(bad))))
    printed = lint(file).stdout
    listed = json.loads(lint("-o", "json", file).stdout)["findings"]
    errors = Counter(each["id"] for each in listed if each["severity"] == "error")
    (id,) = (id for id, number in errors.items() if number > MOST_LINES)
    assert errors[id] == count
    assert printed.count(f": error[{id}]: ") == MOST_LINES
    assert f": and 100 more {id} in this CRD (-o json lists them)\n" in printed


def test_programs_get_a_number_of_findings_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = {f"field{i}": {"type": f"bogus{i}"} for i in range(30)}
    file = written(tmp_path, definition(version(schema(FIELDS))), definition(version(schema(bad))))
    whole = json.loads(lint("-a", "-o", "json", file).stdout)
    assert whole["notListed"] == {}
    monkeypatch.setattr(jsonoutput, "MOST", 40)
    cut = json.loads(lint("-a", "-o", "json", file).stdout)
    assert len(cut["findings"]) == 40
    assert cut["notListed"] == {"findings": len(whole["findings"]) - 40}
    # The most severe ones come first.
    assert sum(each["severity"] == "error" for each in cut["findings"]) == 30

    (run,) = json.loads(lint("-a", "-o", "sarif", file).stdout)["runs"]
    assert run["invocations"][0]["toolExecutionNotifications"] == []
    monkeypatch.setattr(sarifoutput, "MOST_RESULTS", 31)
    (less,) = json.loads(lint("-a", "-o", "sarif", file).stdout)["runs"]
    assert len(less["results"]) == 31
    assert sum(each["level"] == "error" for each in less["results"]) == 30
    (said,) = less["invocations"][0]["toolExecutionNotifications"]
    assert said["message"]["text"].startswith(f"{len(run['results']) - 31} result not listed")
    assert less["invocations"][0]["executionSuccessful"]


def test_a_large_baseline_is_neither_copied_nor_searched_for_each_finding() -> None:
    hashed = 0

    class Name(str):
        def __hash__(self) -> int:
            nonlocal hashed
            hashed += 1
            return super().__hash__()

    copied = 0

    class Counted(Counter[Any]):
        def copy(self) -> "Counted":
            nonlocal copied
            copied += len(self)
            return Counted(self)

    rule = all_conventions()[0]
    fields = tuple(Name(f".spec.field{i}") for i in range(300))
    of_type = LintFinding("a.yaml", Position(), Severity.WARNING, rule, "a", "v1:.spec", "", fields=fields)
    single = [replace(of_type, file=f"{i}.yaml", field=f"v1:.f{i}", fields=()) for i in range(100)]
    accepted = AcceptedFindings(Counted({("a", rule.id, each): 1 for each in fields[1:]}))
    new, known = accepted.divide([of_type, *single])
    assert ([each.path for each in new[:1]], len(new)) == ([".spec.field0"], 101)
    assert [each.paths for each in known] == [fields[1:]]
    assert hashed < 20 * len(fields)
    assert copied == 0


def test_a_file_of_samples_is_read_twice_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [{"name": "Color", "type": "string", "jsonPath": ".spec.color"}]
    crds, samples = [], []
    for i in range(20):
        crd = definition(version(schema({"color": TEXT}), additionalPrinterColumns=columns))
        crd["metadata"]["name"] = f"widget{i}s.example.com"
        crd["spec"]["names"] = {
            "plural": f"widget{i}s",
            "singular": f"widget{i}",
            "kind": f"Widget{i}",
            "listKind": f"Widget{i}List",
        }
        crds.append(crd)
        api_version = f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
        head = {"apiVersion": api_version, "kind": f"Widget{i}", "metadata": {"name": "one"}}
        samples.append({**head, "spec": {}})
    file = written(tmp_path, *crds, *samples, *({"kind": "Other", "n": i} for i in range(50)))
    ended = 0
    parse = yaml.parse

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal ended
        for event in parse(*args, **options):
            ended += type(event) is yaml.DocumentEndEvent
            yield event

    monkeypatch.setattr(yaml, "parse", counted)
    found = json.loads(lint("-a", "-o", "json", file).stdout)["findings"]
    assert sum(each["id"] == "column-empty" for each in found) == 20
    # All documents are read once, and those up to the last CRD again.
    assert ended == 90 + 20


def test_columns_share_a_limit_for_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [{"name": f"C{i}", "type": "string", "jsonPath": ".spec.color"} for i in range(100)]
    crd = definition(version(schema({"color": TEXT}), additionalPrinterColumns=columns))
    api_version = f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}"
    head = {"apiVersion": api_version, "kind": crd["spec"]["names"]["kind"]}
    objects = [{**head, "metadata": {"name": f"n{i}"}, "spec": {}} for i in range(40)]
    limits: list[int] = []

    def counted(template: Any, data: Any, limit: int) -> list[Any]:
        limits.append(limit)
        return first(template, data, limit)

    monkeypatch.setattr(table, "first", counted)
    assert len(linter.lint_samples(crd, objects)) == 100
    assert len(limits) == 4_000
    assert sum(limits) <= linter.MOST_STEPS
