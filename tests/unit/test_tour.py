"""The tour in CONTRIBUTING.md leads everywhere: from the tour to a directory, from its files to the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = "operator/crdkeeper"
_BLOCK = re.compile(r"## Find your way\n\n```\n(.*?)```", re.DOTALL)
_ENTRY = re.compile(r"( *)((?:[\w.*/-]+ )*[\w.*/-]+)(?:  +|$)")
_DEEPEST = 4

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


@pytest.mark.parametrize(("question", "room", "file", "name"), QUESTIONS, ids=[each[0] for each in QUESTIONS])
def test_a_question_is_answered_in_two_steps(question: str, room: str, file: str, name: str) -> None:
    assert leads_to(f"{CODE}/{room}", toured()), f"the tour does not lead to {room}: {question}"
    module = ast.parse((ROOT / CODE / room / file).read_text(encoding="utf-8"))
    assert ast.get_docstring(module)
    defined = {
        each.name
        for each in module.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    assert not name or name in defined
