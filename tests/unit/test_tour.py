"""The tour in CONTRIBUTING.md leads everywhere: from the tour to a directory, from its files to the code.

So does the list of documents.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = "operator/crdkeeper"
_BLOCK = re.compile(r"## Find your way\n\n```\n(.*?)```", re.DOTALL)
_ENTRY = re.compile(r"( *)((?:[\w.*/-]+ )*[\w.*/-]+)(?:  +|$)")
_DEEPEST = 4

_STEM = 4
_COMMON = {
    "the",
    "and",
    "how",
    "who",
    "its",
    "are",
    "what",
    "where",
    "when",
    "which",
    "with",
    "from",
    "have",
    "does",
}

# A question; where the tour leads; the file there; and what it defines, if the answer is one definition.
QUESTIONS = [
    ("Where is the wait before a migration decided?", "core/migration", "settle.py", "settling"),
    ("What does the answer to a patch prove?", "core/migration", "evidence.py", "outcome_of"),
    ("Who rewrites the objects?", "operations/migration", "sweep.py", "Sweep"),
    ("How does `crdkeeper migrate` run without the operator?", "operations/migration", "standalone.py", ""),
    ("Who writes Events?", "cluster/resources", "events.py", "send_event"),
    ("What do I touch to add a lint rule?", "core/lint", "convention.py", "Convention"),
    (
        "Where does a report's condition StorageCurrent come from?",
        "core/diagnosis",
        "conditions/storage.py",
        "judge",
    ),
    ("Which CRDs does a DefinitionPolicy select?", "core/policy", "selection.py", "selects"),
    (
        "Where is what the API server says of a new CRD?",
        "apiserver/definitions",
        "create.py",
        "check_creation",
    ),
    ("How is an object validated by its schema?", "apiserver/objects", "objectschema.py", "ObjectSchema"),
    ("Where does Go's ParseDuration live?", "apiserver/golang", "durations.py", "parse"),
    ("What can CEL's functions on quantities do?", "apiserver/cel", "library/quantity.py", "parse_quantity"),
    ("How is a field kept that the other version lacks?", "core/conversion", "keptaside.py", "Note"),
    ("Who gives way when the webhook has no room?", "webhook/http", "shedding.py", "gives_way"),
    ("When is the webhook's certificate renewed?", "core/certificates", "decision.py", "decide"),
    ("What makes texts from strangers safe to print?", "cli/output", "printing.py", "Styled"),
    ("Who holds the Lease?", "cluster/transport", "lease.py", "Lease"),
    ("Whom does a change of a CRD hurt?", "core/compatibility", "compare.py", ""),
    ("What does a watch do after a 410?", "cluster/transport", "watches.py", ""),
    ("Who deletes a StorageMigration after its TTL?", "controllers/storagemigration", "controller.py", ""),
    ("Where are the operator's metrics?", "controllers", "metrics.py", ""),
    ("What happens when one of the operator's tasks dies?", ".", "supervision.py", "supervise"),
    ("How are the line numbers of YAML found?", "core/documents", "yamldocument.py", ""),
    ("How does output become SARIF?", "cli", "sarif.py", ""),
    (
        "Who creates the CRD of a CompositeResourceDefinition?",
        "controllers/compositeresourcedefinition",
        "controller.py",
        "",
    ),
    ("When may a composite's definition be deleted?", "core/composer", "plan.py", ""),
    ("Which rights does the operator have?", "manifests/rbac", "operator.yaml", ""),
    ("How do tests read what is stored in etcd?", "tests/controlplane", "etcd.py", "Etcd"),
    ("Where is a migration killed in tests?", "tests/faults", "test_kill.py", ""),
]


def toured() -> dict[str, str]:
    """The paths in the tour, each with its description."""
    found = _BLOCK.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert found
    parents: list[tuple[int, str]] = []
    entries: dict[str, str] = {}
    paths: list[str] = []
    for line in found[1].splitlines():
        entry = _ENTRY.match(line)
        if entry is None or len(entry[1]) > _DEEPEST:
            for path in paths:
                entries[path] += f" {line.strip()}"
            continue
        while parents and parents[-1][0] >= len(entry[1]):
            parents.pop()
        base = f"{parents[-1][1]}/" if parents else ""
        paths = [f"{base}{name.rstrip('/')}" for name in entry[2].split()]
        entries.update((path, line[entry.end() :].strip()) for path in paths)
        parents.append((len(entry[1]), paths[0]))
    return entries


def leads_to(room: str, entries: dict[str, str]) -> bool:
    """Whether the tour has an entry for a directory, or names it in that of its parent."""
    around, _, name = room.rpartition("/")
    return room in entries or f"{name}/" in entries.get(around, "")


def test_all_that_the_tour_names_is_there() -> None:
    named = toured()
    assert len(named) > 40
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_the_tour_names_every_room() -> None:
    rooms = sorted(each.parent.relative_to(ROOT).as_posix() for each in (ROOT / CODE).rglob("__init__.py"))
    outer = [each for each in rooms if each > CODE and each.count("/") <= CODE.count("/") + 2]
    entries = toured()
    commands = f"{CODE}/cli/"
    assert [each for each in outer if not leads_to(each, entries) and not each.startswith(commands)] == []


def stems(text: str) -> set[str]:
    """The beginnings of the words of a text that say something."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
    return {each.rstrip("s")[:_STEM] for each in words if len(each) > 2 and each not in _COMMON}


@pytest.mark.parametrize(("question", "room", "file", "name"), QUESTIONS, ids=[each[0] for each in QUESTIONS])
def test_a_question_is_answered_in_two_steps(question: str, room: str, file: str, name: str) -> None:
    asked, entries = stems(question), toured()
    inside = (Path(CODE) / room).as_posix()
    place = inside if (ROOT / inside).is_dir() else room
    around = place.rpartition("/")[0]
    # First: a word of the question stands at the place's entry in the tour, or at that of what it is in.
    assert place == CODE or leads_to(place, entries), f"the tour does not lead to {place}"
    entry = entries.get(place) or entries.get(f"{place}/{file}") or entries[around]
    assert asked & stems(f"{place.removeprefix(CODE)} {entry}"), f"nothing in the tour leads to {place}"
    # Second: another one in the name of the file, in its first sentence, or in what it defines.
    text = (ROOT / place / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        module = ast.parse(text)
        said = ast.get_docstring(module)
        assert said
        defined = {
            each.name
            for each in module.body
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        assert not name or name in defined
        text = said.partition("\n\n")[0]
    assert asked & stems(f"{file} {name} {text.partition(chr(10))[0]}"), f"nothing in {place} leads to {file}"


def test_what_is_to_be_touched_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## To add")[2]
    named = set(re.findall(r"`((?:[\w.]+/)+|(?:[\w.]+/)*\w+\.py)`", text))
    assert len(named) > 12
    found = [*(ROOT / CODE).rglob("*"), *ROOT.glob("*"), *ROOT.glob("manifests/*")]
    paths = {f"/{each.relative_to(ROOT).as_posix()}" for each in found}
    assert [each for each in named if not any(path.endswith(f"/{each.rstrip('/')}") for path in paths)] == []


def test_the_list_of_documents_names_every_page() -> None:
    docs = ROOT / "docs"
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (docs / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(each.name for each in docs.glob("*.md") if each.name != "README.md")
