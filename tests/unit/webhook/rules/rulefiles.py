"""A file with rules and their CRD, and what reads it."""

import json
from pathlib import Path
from typing import Final

import yaml

from crdkeeper.webhook.rules.rulebook import RuleBook
from tests.unit.core.changes.builders import GROUP, NAME, definition

KIND: Final = {
    "apiVersion": "crdkeeper.dev/v1alpha1",
    "kind": "VersionConversion",
    "metadata": {"name": NAME},
}


def crd() -> str:
    found = definition()
    found["spec"]["versions"].append({**found["spec"]["versions"][0], "name": "v2", "storage": False})
    return f"{json.dumps(found)}\n---\n"


def rules(spoke: str = "v2") -> str:
    resource = {"group": GROUP, "resource": "widgets"}
    return json.dumps({**KIND, "spec": {"resource": resource, "hub": "v1", "spokes": [{"version": spoke}]}})


WITHOUT_CRD: Final = json.dumps(
    {**KIND, "spec": {"resource": {"group": GROUP, "resource": "gadgets"}, "hub": "v1", "spokes": []}}
)


def started(paths: tuple[Path, ...]) -> RuleBook:
    book = RuleBook(paths)
    assert not book.refresh()
    assert book.refresh()
    return book


def look_until_settled(book: RuleBook) -> None:
    """Two looks that find the same; the first never counts."""
    assert not book.refresh()
    assert book.refresh()
    assert not book.refresh()


def scaled() -> str:
    """The CRD and a rule without which the rest of the file is valid."""
    found = json.loads(crd().removesuffix("\n---\n"))
    field = {"type": "object", "properties": {"timeout": {"type": "integer"}}}
    for version in found["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": field}}}
    rule = {"hub": "spec.timeout", "spoke": "spec.timeout", "scale": {"hub": 1, "spoke": 1000}}
    resource = {"group": GROUP, "resource": "widgets"}
    spokes = [{"version": "v2", "rules": [rule]}]
    documents = [found, {**KIND, "spec": {"resource": resource, "hub": "v1", "spokes": spokes}}]
    return yaml.safe_dump_all(documents, sort_keys=False)
