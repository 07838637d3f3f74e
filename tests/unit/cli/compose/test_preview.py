"""`crdkeeper compose preview`: what it reads before it asks a cluster, and how it prints the results."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from crdkeeper.cli.compose.previewoutput import PreviewOutput
from crdkeeper.core.composites.difference import FieldChange
from crdkeeper.core.composites.preview import Change, PreviewedComposite, PreviewedObject
from tests.unit.cli.hostile import ALL, assert_harmless

COMPOSITION = """\
apiVersion: crdkeeper.dev/v1alpha1
kind: Composition
metadata: {name: databases}
spec:
  compositeTypeRef: {apiVersion: example.com/v1, kind: Database}
  resources:
  - name: first
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
"""


def run(folder: Path, text: str, *options: str) -> Result:
    """Preview a file."""
    file = folder / "composition.yaml"
    file.write_text(text)
    return CliRunner().invoke(main, ["compose", "preview", "-f", str(file), *options])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Other\n", "contains no Composition"),
        (f"{COMPOSITION}---\n{COMPOSITION}", "preview one at a time"),
        (COMPOSITION.replace("name: databases", "labels: {}"), "metadata.name: must be set"),
        (COMPOSITION.replace("name: first", "name: composite"), "composition.yaml:"),
        (COMPOSITION.replace("template:", "templates:"), "there is no such field"),
    ],
)
def test_what_is_no_composition_is_refused_without_a_cluster(tmp_path: Path, text: str, said: str) -> None:
    done = run(tmp_path, text)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_single_composites_and_a_choice_among_all_exclude_each_other(tmp_path: Path) -> None:
    done = run(tmp_path, COMPOSITION, "--composite", "a/b", "--limit", "3")
    assert done.exit_code == 2
    assert "--composite names composites" in done.stderr


def changed(change: Change = "Changed", **more: object) -> PreviewedComposite:
    """A composite with one object."""
    field = FieldChange(path="data.x", before="1", after="2")
    fields = {"resource": "r", "change": change, "kind": "ConfigMap", "namespace": "shop", "name": "a"}
    one = PreviewedObject.model_validate({**fields, "fields": [field], **more})
    return PreviewedComposite(namespace="shop", name="orders", unchanged=2, objects=[one])


def test_composites_are_printed_as_they_come_and_then_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    output = PreviewOutput("text", "databases-2", new=True)
    output.take(changed())
    output.take(PreviewedComposite(namespace="shop", name="same", unchanged=3, objects=[]))
    output.end("Database", 1)
    assert capsys.readouterr().out.splitlines() == [
        "CompositionRevision databases-2 would be made.",
        "shop/orders",
        "  ~ ConfigMap shop/a",
        "      ~ data.x: 1 -> 2",
        "2 of kind Database would run by databases-2: 1 changed, 1 unchanged.",
        "Objects: 1 changed, 5 unchanged.",
        "1 composite would not run by it.",
    ]
    assert (output.differs, output.failed) == (True, False)


@pytest.mark.parametrize(
    ("change", "new", "differs", "failed"),
    [
        ("Deleted", False, True, False),
        ("Waiting", True, True, False),
        ("Waiting", False, False, False),
        ("Refused", True, True, True),
        ("Unknown", False, True, True),
    ],
)
def test_what_decides_about_the_exit_code(change: Change, new: bool, differs: bool, failed: bool) -> None:
    output = PreviewOutput("json", "databases-2", new=new)
    output.take(changed(change))
    assert (output.differs, output.failed) == (differs, failed)


def test_what_strangers_have_written_does_not_act(capsys: pytest.CaptureFixture[str]) -> None:
    field = FieldChange(path=ALL, before=ALL, after=None)
    for kind in ("text", "json", "yaml"):
        output = PreviewOutput(kind, ALL, new=False)
        output.take(changed("Refused", name=ALL, message=ALL, fields=[field]))
        output.end(ALL, 0)
        assert_harmless(capsys.readouterr().out)


def test_fields_of_one_run_are_bounded(capsys: pytest.CaptureFixture[str]) -> None:
    output = PreviewOutput("json", "databases-2", new=True)
    for _ in range(600):
        fields = [FieldChange(path=f"data.x{number}", after="1") for number in range(100)]
        output.take(changed(fields=fields))
    output.end("Database", 0)
    found = json.loads(capsys.readouterr().out)
    objects = [each for composite in found["composites"] for each in composite["objects"]]
    assert sum(len(each["fields"]) for each in objects) == 50_000
    assert sum(each["moreFields"] for each in objects) == 10_000
    assert found["summary"]["objects"] == {"Changed": 600, "Unchanged": 1200}
