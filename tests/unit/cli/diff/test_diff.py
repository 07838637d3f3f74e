"""`crdkeeper diff`: its input, the lines that it points to, its output and exit codes."""

import json
import subprocess
from pathlib import Path
from textwrap import dedent, indent

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main

OLD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names:
    plural: widgets
    kind: Widget
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color:
                type: string
                enum: [red, blue]
              size:
                type: string
"""
BREAKING = OLD.replace("[red, blue]", "[blue]")
RISKY = OLD.replace("[red, blue]", "[red, blue, green]")
SAFE = OLD + "                maxLength: 3\n"
SAFE_BEFORE = SAFE.replace("maxLength: 3", "maxLength: 2")
GONE = OLD.replace("              size:\n                type: string\n", "")
OTHER = OLD.replace("widgets", "gadgets").replace("Widget", "Gadget")


def diff(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["diff", *map(str, arguments)], input=stdin)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("old", OLD), ("breaking", BREAKING), ("risky", RISKY), ("gone", GONE)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_what_is_not_compared_completely_is_not_called_compatible(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crdkeeper.core.compatibility.compare.MAX_RULE_CHARACTERS", -1)
    result = diff(files / "old.yaml", files / "old.yaml")
    assert result.exit_code == 2
    assert result.stdout.splitlines()[-1] == "Compatible as far as compared."
    assert result.stderr == "widgets.example.com: too large to compare completely\n"


def test_nothing_changed(files: Path) -> None:
    result = diff(files / "old.yaml", files / "old.yaml")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "1 CRD compared. Changes: 0 breaking, 0 risky, 0 safe.",
        "Compatible.",
    ]


def test_breaking(files: Path) -> None:
    result = diff(files / "old.yaml", files / "breaking.yaml")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "widgets.example.com, v1"
    place = f"{files}/breaking.yaml:24:17"
    assert lines[1] == f'  {place}: breaking[enum-tightened]: spec.color: enum: "red" no longer accepted'
    assert lines[2].startswith("      Hurts writers and stored objects. Objects with a removed value")
    assert lines[3].startswith("      hint: Keep the value")
    assert lines[-1] == "Breaking for writers and stored objects."


def test_what_is_gone_is_shown_where_it_was(files: Path) -> None:
    line = diff(files / "old.yaml", files / "gone.yaml").stdout.splitlines()[1]
    assert line.startswith(
        f"  {files}/gone.yaml:21:13: breaking[field-removed]: spec.size: the field is gone"
    )
    assert line.endswith(f"(was at {files}/old.yaml:25:15)")


@pytest.mark.parametrize(
    ("new", "fail_on", "code"),
    [
        (RISKY, "breaking", 0), (RISKY, "risky", 1), (RISKY, "none", 0),
        (BREAKING, "breaking", 1), (BREAKING, "risky", 1), (BREAKING, "none", 0),
        (OLD, "risky", 0),
    ],
)  # fmt: skip
def test_exit_codes(files: Path, new: str, fail_on: str, code: int) -> None:
    assert diff(files / "old.yaml", "-", "--fail-on", fail_on, stdin=new).exit_code == code


def test_safe_changes_are_counted_and_shown_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(SAFE_BEFORE)
    (tmp_path / "new.yaml").write_text(SAFE)
    hidden = diff(tmp_path / "old.yaml", tmp_path / "new.yaml")
    assert "0 risky, 1 safe (--all shows the safe ones)." in hidden.stdout
    assert "limit-loosened" not in hidden.stdout
    shown = diff(tmp_path / "old.yaml", tmp_path / "new.yaml", "--all")
    assert "safe[limit-loosened]: spec.size: maxLength: 2 → 3" in shown.stdout


def test_many_changes_of_one_kind_are_shown_in_part(tmp_path: Path) -> None:
    fields = "".join(f"              f{i}:\n                type: string\n" for i in range(30))
    (tmp_path / "old.yaml").write_text(OLD + fields)
    (tmp_path / "new.yaml").write_text(OLD)
    assert diff(tmp_path / "old.yaml", tmp_path / "new.yaml").stdout.count("field-removed]") == 10
    part = diff(tmp_path / "old.yaml", tmp_path / "new.yaml").stdout
    assert "  and 20 more field-removed (--all shows them)" in part
    assert "Changes: 30 breaking" in part
    everything = diff(tmp_path / "old.yaml", tmp_path / "new.yaml", "--all").stdout
    assert everything.count("field-removed]") == 30


def test_a_change_in_several_versions_is_shown_once(files: Path) -> None:
    def twice(text: str) -> str:
        version = text.partition("  - name: v1\n")[2]
        return f"{text}  - name: v2\n{version}".replace("storage: true", "storage: false", 1)

    (files / "old.yaml").write_text(twice(OLD))
    result = diff(files / "old.yaml", "-", stdin=twice(BREAKING))
    assert result.stdout.splitlines()[0] == "widgets.example.com, v1, v2"
    assert result.stdout.count("enum-tightened]") == 1
    assert "Changes: 2 breaking" in result.stdout


def test_what_one_shared_type_causes_is_shown_once(tmp_path: Path) -> None:
    for side, color in (("old", "[red, blue]"), ("new", "[blue]")):
        texts = [each.replace("[red, blue]", color) for each in (OLD, OTHER)]
        (tmp_path / f"{side}.yaml").write_text("---\n".join(texts))
    files = tmp_path / "old.yaml", tmp_path / "new.yaml"
    part = diff(*files).stdout
    assert part.count("enum-tightened]") == 1
    assert "and the same in 1 more place (--all shows them)" in part
    assert "Changes: 2 breaking" in part
    assert diff(*files, "--all").stdout.count("enum-tightened]") == 2
    changes = json.loads(diff(*files, "-o", "json").stdout)["changes"]
    assert [each["alike"] for each in changes] == [2, 2]
    # Each removed CRD is listed.
    (tmp_path / "new.yaml").write_text(OLD.replace("widgets", "others"))
    assert diff(*files).stdout.count("definition-removed]") == 2


def test_json(files: Path) -> None:
    result = diff(files / "old.yaml", files / "breaking.yaml", "-o", "json")
    document = json.loads(result.stdout)
    assert (document["compared"], document["severity"], document["notListed"]) == (1, "breaking", 0)
    (change,) = document["changes"]
    assert (change["id"], change["field"], change["version"]) == ("enum-tightened", "spec.color", "v1")
    assert change["effects"] == {"writers": "breaking", "stored objects": "breaking"}
    assert change["at"] == {"file": f"{files}/breaking.yaml", "line": 24, "column": 17}
    assert change["was"] == {"file": f"{files}/old.yaml", "line": 24, "column": 17}


def test_sarif(files: Path) -> None:
    result = diff(files / "old.yaml", files / "breaking.yaml", "-o", "sarif")
    run = json.loads(result.stdout)["runs"][0]
    (finding,) = run["results"]
    assert (finding["ruleId"], finding["level"]) == ("enum-tightened", "error")
    place = finding["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"{files.as_posix()}/breaking.yaml"
    assert place["region"] == {"startLine": 24, "startColumn": 17}
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == ["enum-tightened"]
    assert "docs/diff.md#enum-tightened" in run["tool"]["driver"]["rules"][0]["help"]["text"]


def test_folders_by_name(tmp_path: Path) -> None:
    for side, texts in (("old", (OLD, OTHER)), ("new", (BREAKING, OTHER))):
        (tmp_path / side).mkdir()
        for i, text in enumerate(texts):
            (tmp_path / side / f"{i}.yaml").write_text(text)
    result = diff(tmp_path / "old", tmp_path / "new")
    assert "2 CRDs compared. Changes: 1 breaking, 0 risky, 0 safe." in result.stdout
    (tmp_path / "new" / "0.yaml").unlink()
    result = diff(tmp_path / "old", tmp_path / "new")
    assert f"{tmp_path}/old/0.yaml:5:1: breaking[definition-removed]" in result.stdout


def test_one_crd_on_each_side_is_the_same_under_another_name(files: Path) -> None:
    result = diff(files / "old.yaml", "-", stdin=OTHER)
    assert "breaking[identity]: spec.names.plural: plural:" in result.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "-:2:1: unreadable: not YAML"),
        ("kind: ConfigMap\n", "-:1:1: unreadable: contains no CustomResourceDefinition"),
        (OLD.replace("/v1\n", "/v1alpha1\n"), "-:1:1: unreadable: apiVersion:"),
        (OLD.replace("Namespaced", "3"), "-:7:3: unreadable: spec.scope: Invalid value: 3: must be a string"),
        (f"{OLD}---\n{BREAKING}", "widgets.example.com is defined differently at -:1"),
    ],
)
def test_what_cannot_be_compared(files: Path, text: str, said: str) -> None:
    result = diff(files / "old.yaml", "-", stdin=text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Compatible" not in result.stdout


def test_conversion_that_the_files_do_not_show(files: Path) -> None:
    version = GONE.partition("  - name: v1\n")[2].replace("storage: true", "storage: false")
    new = f"{OLD}  - name: v2\n{version}"
    assert "breaking[served-field]: spec.size" in diff(files / "old.yaml", "-", stdin=new).stdout
    converted = diff(files / "old.yaml", "-", "--converted", stdin=new)
    assert "risky[served-conversion]: spec.size" in converted.stdout


@pytest.mark.parametrize(
    "arguments",
    [(), ("a",), ("a", "b", "c"), ("-", "-"), ("--live",), ("--against", "x"), ("--against", "x", "-"),
     ("--against", "x", "--live", "a")],
)  # fmt: skip
def test_usage(arguments: tuple[str, ...]) -> None:
    result = diff(*arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with the old CRD committed and tagged, and the new one in the working tree."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "repository"
    (folder / "crds" / "deep").mkdir(parents=True)
    file = folder / "crds" / "deep" / "widgets.yaml"
    file.write_text(OLD)
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
    for arguments in (
        ("init", "--quiet"),
        ("add", "."),
        (*identity, "commit", "--quiet", "--message", "Add widgets"),
        ("tag", "before"),
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    file.write_text(BREAKING)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("--against", "before", "crds"),
        ("--against", "before", "crds/deep/widgets.yaml"),
        ("--against", "before", "-f", "crds"),
        ("--against", "HEAD", "."),
        ("before:crds", "crds"),
        ("before:crds/deep/widgets.yaml", "crds/deep/widgets.yaml"),
        ("before:./crds/deep/widgets.yaml", "crds"),
        ("before:", "."),
    ],
)
def test_git_revisions(repository: Path, arguments: tuple[str, ...]) -> None:
    result = diff(*arguments)
    assert (result.exit_code, "breaking[enum-tightened]" in result.stdout) == (1, True), result.stderr


def test_in_a_hook_paths_are_relative_to_their_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one in a linked worktree or a submodule, git sets GIT_DIR."""
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    result = diff("--against", "HEAD", "crds/deep/widgets.yaml")
    assert (result.exit_code, "breaking[enum-tightened]" in result.stdout) == (1, True), result.stderr


def test_what_a_revision_lacks_is_new(repository: Path) -> None:
    (repository / "crds" / "gadgets.yaml").write_text(OTHER)
    result = diff("--against", "before", "--all", "crds")
    assert "safe[definition-added]" in result.stdout
    assert "2 CRDs compared." in result.stdout


@pytest.fixture
def linked(repository: Path) -> Path:
    """The repository with a commit in which the file with the CRD is a symlink to the old one."""
    file = repository / "crds" / "deep" / "widgets.yaml"
    (repository / "shared.txt").write_text(OLD)
    file.unlink()
    file.symlink_to("../../shared.txt")
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
    for arguments in (("add", "."), (*identity, "commit", "--quiet", "--message", "Link widgets")):
        subprocess.run(["git", *arguments], cwd=repository, check=True)
    return repository


@pytest.mark.parametrize(
    "arguments",
    [
        ("--against", "HEAD", "crds"),
        ("--against", "HEAD", "crds/deep/widgets.yaml"),
        ("HEAD:crds", "crds"),
        ("HEAD:crds/deep/widgets.yaml", "crds"),
    ],
)
def test_symlinks_in_a_revision(linked: Path, arguments: tuple[str, ...]) -> None:
    assert diff(*arguments).stdout.splitlines()[-1] == "Compatible."
    (linked / "shared.txt").write_text(BREAKING)
    result = diff(*arguments)
    assert (result.exit_code, "breaking[enum-tightened]" in result.stdout) == (1, True), result.stderr


def test_a_symlink_that_leads_nowhere_in_a_revision_is_not_called_a_new_crd(linked: Path) -> None:
    subprocess.run(["git", "rm", "--quiet", "--cached", "shared.txt"], cwd=linked, check=True)
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x"],
        cwd=linked,
        check=True,
    )
    result = diff("--against", "HEAD", "crds")
    said = "HEAD:crds/deep/widgets.yaml:1:1: unreadable: a symlink that leads to nothing in the revision"
    assert (result.exit_code, said in result.stderr) == (2, True), result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--against", "nonsense", "crds"), "git does not know the revision 'nonsense'"),
        (("--against=--upload-pack=x", "crds"), "is not a revision"),
        (("nonsense:crds", "crds"), "git does not know the revision 'nonsense'"),
        (("before:none", "crds"), "there is no 'none' in before"),
    ],
)
def test_bad_revisions(repository: Path, arguments: tuple[str, ...], said: str) -> None:
    result = diff(*arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_outside_of_a_repository(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(files.parent))
    result = diff("--against", "HEAD", "old.yaml")
    assert (result.exit_code, "not a git repository" in result.stderr) == (2, True)


def test_the_root_of_a_schema_is_an_object(files: Path) -> None:
    # v1beta1 accepted a root without a type.
    head, _, schema = OLD.partition("    schema:\n      openAPIV3Schema:\n        type: object\n")
    validation = indent(dedent(schema), "      ")
    old = f"{head}  validation:\n    openAPIV3Schema:\n{validation}  preserveUnknownFields: false\n"
    (files / "old.yaml").write_text(old.replace("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"))
    assert diff(files / "old.yaml", "-", "--all", stdin=OLD).stdout.splitlines() == [
        "1 CRD compared. Changes: 0 breaking, 0 risky, 0 safe.",
        "Compatible.",
    ]
    assert "breaking[enum-tightened]: spec.color" in diff(files / "old.yaml", "-", stdin=BREAKING).stdout


def test_a_crd_of_which_no_version_is_served_is_not_called_compatible(files: Path) -> None:
    new = OLD.replace("served: true", "served: false")
    (files / "new.yaml").write_text(new)
    lines = diff(files / "new.yaml", files / "new.yaml").stdout.splitlines()
    assert lines[0] == "widgets.example.com"
    said = "risky[none-served]: spec.versions: no version is served, as before the change"
    assert lines[1] == f"  {files}/new.yaml:11:3: {said}"
    assert lines[-1] == "Risky for writers and readers: needs a review."
    said = diff(files / "old.yaml", files / "new.yaml").stdout
    assert "risky[none-served]: spec.versions: no version is served\n" in said
    assert "breaking[version-not-served]" in said
