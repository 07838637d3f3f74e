"""`crdkeeper lint`, `diff` and `rehearse` take a definition wherever a CRD: here beside a live one."""

import json
from pathlib import Path

import pytest

from tests.cluster.cli.commandline import CommandLine
from tests.cluster.composition.authoring import Author, Definition, Json
from tests.unit.core.composition.documents import SPEC, schema, version

TIMEOUT = {"type": "string", "format": "duration"}
COMPATIBLE = "1 CRD compared. Changes: 0 breaking, 0 risky, 0 safe.\nCompatible.\n"


def with_engine(*values: str) -> list[Json]:
    """One version whose composites have one of these engines."""
    engine = {"type": "string", "enum": [*values]}
    return [version(of=schema({**SPEC, "properties": {**SPEC["properties"], "engine": engine}}))]


def names_of(thing: Definition) -> Json:
    """All names that it has."""
    more = {"shortNames": ["th"], "categories": ["platform"]}
    return {"kind": thing.kind, "plural": thing.plural, **more}


class Folder:
    """Where a user keeps a definition."""

    def __init__(self, path: Path) -> None:
        self._path = path / "definition.json"

    def write(self, document: Json) -> str:
        self._path.write_text(json.dumps(document, indent=2))
        return str(self._path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
async def thing(author: Author, group: str) -> Definition:
    """A definition with two composites."""
    thing = Definition(group, "thing")
    await author.apply(thing, names=names_of(thing))
    await author.ready(thing)
    await author.make_composites(thing, ["a", "b"])
    return thing


async def test_what_the_composer_has_made_is_what_the_definition_says(
    shell: CommandLine, folder: Folder, thing: Definition
) -> None:
    file = folder.write(thing.document(names=names_of(thing)))
    done = await shell.run("diff", "--live", file, "--fail-on=risky", "--all")
    assert (done.exit_code, done.stderr, done.stdout) == (0, "", COMPATIBLE)
    done = await shell.run("rehearse", "-f", file, "-o", "json")
    (report,) = json.loads(done.stdout)["items"]
    assert (done.exit_code, report["verdict"], report["objects"]) == (0, "Safe", 2)
    assert (report["isNew"], report["affected"]) == (False, {})


async def test_what_a_change_hurts_is_what_the_composer_says(
    author: Author, shell: CommandLine, folder: Folder, thing: Definition
) -> None:
    change = {"versions": with_engine("Postgres"), "names": names_of(thing)}
    file = folder.write(thing.document(**change))
    before = await author.get(thing.crd)
    done = await shell.run("diff", "--live", file, "-o", "json")
    assert done.exit_code == 1
    breaking = [each for each in json.loads(done.stdout)["changes"] if each["severity"] == "breaking"]
    assert [each["field"].rpartition("spec.")[2] for each in breaking] == ["engine"]

    for use in ("never", "always"):
        done = await shell.run("rehearse", "-f", file, "-o", "json", f"--shadow={use}")
        (report,) = json.loads(done.stdout)["items"]
        assert (done.exit_code, report["verdict"], report["affected"]) == (1, "Harmful", {"Refused": 2})
        assert report["objectsByServer"] == (2 if use == "always" else 0), report
    assert await author.get(thing.crd) == before

    await author.apply(thing, **change)
    tried = "Tried on 2 composites: 2 (default/a, default/b): spec.engine: "
    said = await author.says(thing, "Accepted", tried)
    assert all(each["message"] in said for each in breaking)


async def test_the_findings_are_those_of_the_live_crd(
    author: Author, shell: CommandLine, folder: Folder, group: str
) -> None:
    thing = Definition(group, "thing")
    spec = {**SPEC, "properties": {**SPEC["properties"], "timeout": TIMEOUT}}
    await author.apply(thing, versions=[version(of=schema(spec))])
    await author.ready(thing)
    file = folder.write(thing.document(versions=[version(of=schema(spec))]))
    found: list[set[tuple[str, str]]] = []
    for arguments in (("-f", file), (thing.name,)):
        done = await shell.run("lint", *arguments, "--all", "-o", "json")
        assert done.stderr == ""
        findings = json.loads(done.stdout)["findings"]
        found.append({(each["id"], each["field"]) for each in findings})
    assert ("description", "v1:.spec.timeout") in found[0]
    # What every composite has is no fault of the author.
    more = found[1] - found[0]
    assert found[0] < found[1]
    assert all("crdkeeper" in field or field.startswith("v1:.status") for _, field in more)
