"""`crdkeeper rehearse` offline: its input, output, and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from crdkeeper.cli import main
from tests.unit.core.rehearsal.crds import GROUP, INTEGER, TEXT, crd, version, widget

Json = Any
OLD = crd(version(a=TEXT, b=INTEGER))


class Folder:
    """Files of one test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str, *documents: Json) -> str:
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["rehearse", *args])


def objects(number: int) -> list[Json]:
    return [{**widget({"a": "x" * i, "b": i}), "metadata": {"name": f"w{i}"}} for i in range(number)]


@pytest.mark.parametrize(
    ("new", "exit_code", "verdict", "affected"),
    [
        (crd(version(a=TEXT, b=INTEGER, c=TEXT)), 0, "Safe", {}),
        (crd(version(a=TEXT, b=INTEGER, c=TEXT | {"default": "d"})), 0, "Safe", {"Defaulted": 4}),
        (crd(version(a=TEXT | {"maxLength": 1}, b=INTEGER)), 1, "Harmful", {"Refused": 2}),
        (crd(version(a=TEXT)), 1, "Harmful", {"Pruned": 4}),
        (crd(version(a=TEXT, b={"type": "nonsense"})), 1, "Rejected", {}),
        (crd(version("v2", a=TEXT, b=INTEGER)), 1, "Rejected", {}),
    ],
)
def test_exit_codes(folder: Folder, new: Json, exit_code: int, verdict: str, affected: Json) -> None:
    files = ("-f", folder.file("new.yaml", new), "--from", folder.file("old.yaml", OLD))
    found = run(*files, "--objects", folder.file("objects.yaml", *objects(4)), "-o", "json")
    assert found.exit_code == exit_code, found.output
    listed = json.loads(found.stdout)
    assert (listed["kind"], len(listed["items"])) == ("RehearsalList", 1)
    report = listed["items"][0]
    assert (report["verdict"], report["affected"]) == (verdict, affected)
    as_yaml = run(*files, "--objects", folder.file("objects.yaml", *objects(4)), "-o", "yaml")
    assert yaml.safe_load(as_yaml.stdout) == listed


def test_what_is_not_known_is_neither_safe_nor_harmful(folder: Folder) -> None:
    new = folder.file("new.yaml", crd(version(a=TEXT, b=INTEGER)))
    old = folder.file("old.yaml", crd(version(a=TEXT, b=INTEGER | {"default": 1})))
    found = run("-f", new, "--from", old, "--objects", folder.file("objects.yaml", *objects(4)))
    assert found.exit_code == 2
    assert found.stdout.splitlines()[2:] == [
        "Indeterminate (not predicted, or not wholly): 1 object",
        "  spec.b: whether the default that is read here is stored decides what becomes of it (v1): 1 object",
        "      w1",
        "",
        "The outcome is uncertain for some objects.",
    ]
    # Without the current CRD, everything is assumed to be stored.
    assert run("-f", new, "--objects", folder.file("objects.yaml", *objects(4))).exit_code == 0


def test_what_is_new_and_what_differs_between_objects_is_said_so(folder: Folder) -> None:
    new = crd(version(a=TEXT, b=INTEGER | {"maximum": 1}), version("v2", storage=False, a=TEXT))
    files = ("-f", folder.file("new.yaml", new), "--from", folder.file("old.yaml", OLD))
    found = run(*files, "--objects", folder.file("objects.yaml", *objects(4)))
    assert found.stdout.splitlines() == [
        f"widgets.{GROUP}: 4 objects rehearsed by the engine, offline",
        "",
        "Refused (refused if it is created again, or if the field changes): 2 objects",
        "  spec.b: for example, Invalid value: 2: spec.b in body should be less than or equal to 1 (v1): "
        "2 objects",
        "      w2, w3",
        "",
        "Only for clients that use v2, which is not served today:",
        "",
        "Pruned (a field is lost for all who read it): 4 objects",
        "  spec.b (v2): 4 objects",
        "      w0, w1, w2, w3",
        "",
        "Something is lost or refused.",
    ]


def test_of_many_those_that_are_sound_take_a_line_each(folder: Folder) -> None:
    def named(name: str, **parts: Json) -> Json:
        found = crd(version(**parts))
        found["metadata"]["name"] = f"{name}s.{GROUP}"
        found["spec"]["names"] = {"plural": f"{name}s", "kind": name.capitalize()}
        return found

    items = [{**each, "kind": kind} for each in objects(1) for kind in ("Cat", "Dog", "Cow")]
    new = folder.file(
        "new.yaml", named("cat", a=TEXT, b=INTEGER), named("dog", a=TEXT), named("cow", a=TEXT, b=INTEGER)
    )
    found = run("-f", new, "--objects", folder.file("objects.yaml", *items))
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        f"cats.{GROUP}: 1 object rehearsed by the engine, offline. Nothing is lost or refused.",
        f"cows.{GROUP}: 1 object rehearsed by the engine, offline. Nothing is lost or refused.",
        "",
        f"dogs.{GROUP}: 1 object rehearsed by the engine, offline",
        "",
        "Pruned (a field is lost for all who read it): 1 object",
        "  spec.b (v1): 1 object",
        "      w0",
        "",
        "Note: 2 of the objects are of another kind",
        "",
        "Something is lost or refused.",
        "",
        "3 CRDs: 2 safe, 1 harmful.",
    ]


def test_a_release_with_objects_of_one_of_its_crds(folder: Folder) -> None:
    other = crd(version(a=TEXT))
    other["metadata"]["name"] = f"gears.{GROUP}"
    other["spec"]["names"] = {"plural": "gears", "kind": "Gear"}
    found = run(
        "-f", folder.file("new.yaml", OLD, other), "--objects", folder.file("objects.yaml", *objects(2))
    )
    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines() == [
        f"widgets.{GROUP}: 2 objects rehearsed by the engine, offline. Nothing is lost or refused.",
        f"gears.{GROUP}: 0 objects rehearsed by the engine, offline. Nothing is lost or refused.",
        "",
        "2 CRDs: 2 safe.",
    ]


def test_folders_and_lists_of_objects_and_what_is_of_another_kind(folder: Folder) -> None:
    folder.file("objects/a.yaml", {"apiVersion": "v1", "kind": "List", "items": objects(3)})
    folder.file("objects/b.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    found = run("-f", folder.file("new.yaml", OLD), "--objects", str(folder.path / "objects"), "-o", "json")
    (report,) = json.loads(found.stdout)["items"]
    assert (report["objects"], report["notes"]) == (3, ["1 of the objects are of another kind"])


def test_a_conversion_that_the_file_does_not_mention_stays(folder: Folder) -> None:
    webhook = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": "https://x.example"}, "conversionReviewVersions": ["v1"]},
    }
    versions = version(a=TEXT, b=INTEGER), version("v2", storage=False, a=TEXT, b=INTEGER)
    new = crd(*versions)
    del new["spec"]["conversion"]
    files = folder.file("new.yaml", new), folder.file("old.yaml", crd(*versions, conversion=webhook))
    found = run("-f", files[0], "--from", files[1], "--objects", folder.file("o.yaml", *objects(1)))
    assert found.exit_code == 2
    said = "https://x.example converts, and what it makes of objects is not known: what is read at v2"
    assert said in found.stdout


def _rules(*rules: Json, version: str = "v2") -> Json:
    return {
        "apiVersion": "crdkeeper.dev/v1alpha1",
        "kind": "VersionConversion",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "resource": {"group": GROUP, "resource": "widgets"},
            "hub": "v1",
            "spokes": [{"version": version, "rules": list(rules)}],
        },
    }


def test_objects_that_convert_differently_or_not_at_all(folder: Folder) -> None:
    both = crd(version(a=TEXT, b=INTEGER), version("v2", storage=False, a=TEXT, b=TEXT))
    new, old = folder.file("new.yaml", both), folder.file("old.yaml", both)
    listed = folder.file("objects.yaml", *objects(3))
    cast = folder.file("cast.yaml", _rules({"hub": "spec.b", "spoke": "spec.b", "cast": True}))
    swapped = folder.file(
        "swapped.yaml",
        _rules(
            {"hub": "spec.b", "spoke": "spec.a", "cast": True},
            {"hub": "spec.a", "spoke": "spec.b"},
        ),
    )
    files = ("-f", new, "--from", old, "--objects", listed, "-o", "json")

    same = run(*files, "--rules", cast, "--old-rules", cast)
    assert same.exit_code == 0, same.output
    differ = run(*files, "--rules", swapped, "--old-rules", cast)
    (report,) = json.loads(differ.stdout)["items"]
    assert (differ.exit_code, report["affected"]) == (1, {"ConvertedDifferently": 3})
    assert {each["field"] for each in report["findings"]} == {"spec.a", "spec.b"}

    numbers = crd(version(a=TEXT), version("v2", storage=False, a=INTEGER))
    refusing = {"hub": "spec.a", "spoke": "spec.a", "cast": True, "refuse": True}
    as_number = folder.file("number.yaml", _rules(refusing))
    texts = folder.file("texts.yaml", *(widget({"a": each}) for each in ("1", "one")))
    found = run("-f", folder.file("n.yaml", numbers), "--objects", texts, "--rules", as_number, "-o", "json")
    (report,) = json.loads(found.stdout)["items"]
    assert (found.exit_code, report["affected"]) == (1, {"Unconvertible": 1})


def test_bad_input_is_named(folder: Folder) -> None:
    good = folder.file("good.yaml", OLD)
    bad = crd(version(a={"type": 5}))
    foreign = {**_rules(), "spec": {**_rules()["spec"], "resource": {"group": "x.y", "resource": "z"}}}
    given = folder.file("objects.yaml", *objects(1))
    cases: list[tuple[tuple[str, ...], str]] = [
        (("-f", "nowhere.yaml"), "nowhere.yaml"),
        (("-f", folder.file("pod.yaml", {"kind": "Pod"})), "no CustomResourceDefinition"),
        (("-f", folder.file("bad.yaml", bad)), "spec.versions[0].schema.openAPIV3Schema.properties[spec]"),
        (("-f", folder.file("nameless.yaml", {**OLD, "metadata": {}})), "metadata.name: must be set"),
        (("-f", good, "--rules", folder.file("foreign.yaml", foreign)), "spec.resource: z.x.y is none of"),
        (
            ("-f", good, "--objects", given, "--rules", folder.file("r.yaml", _rules())),
            "spec.spokes[0].version",
        ),
        (("-f", good, "--from", good), "--from requires --objects"),
        (("-f", good, "--objects", folder.file("other.yaml", {"kind": "Pod"})), "--objects: no object of"),
        (("-f", good, "--objects", folder.file("text.yaml", "text")), "not a Kubernetes object"),
        (("-f", good, "--objects", given, "--from", "nowhere.yaml"), "nowhere.yaml"),
        (
            ("-f", good, "--objects", folder.file("m.yaml", widget({}, metadata="text"))),
            "metadata: must be an",
        ),
        (("-f", good, "--objects", given, "--old-rules", given), "--old-rules requires --from"),
        (("-f", good, "--objects", given, "--shadow", "never"), "--shadow requires a cluster"),
        (("-f", good, "--kubeconfig", "nowhere"), "nowhere"),
        ((), "--filename"),
    ]
    for args, said in cases:
        found = run(*args)
        assert found.exit_code == 2, (args, found.output)
        assert said in found.stderr, (args, found.stderr)
