"""Every reason that a condition or an Event can show is in docs/operating.md, and no other is."""

import ast
import re
from pathlib import Path

import pytest

from crdkeeper.api.definitionpolicy import DefinitionPolicy, MigrationPolicy
from crdkeeper.api.storagemigration import MigrationSweep, StorageMigration, StorageMigrationSpec
from crdkeeper.core.diagnosis import registry
from crdkeeper.core.diagnosis.verdict import Reason
from crdkeeper.core.migration.protocol import STEPS

ROOT = Path(__file__).parents[2]
RAISING = (
    "core/migration/protocol.py",
    "core/migration/record.py",
    "core/migration/settle.py",
    "core/policy/migrations.py",
    "operations/migration/run.py",
    "operations/migration/sweep.py",
    "controllers/definitionpolicy/controller.py",
)
OTHER_WORDS = {
    *STEPS,
    *("Succeeded", "Suspended", "Ready"),  # conditions
    *("True", "False", "Unknown", "Normal", "Warning"),
    *(StorageMigration.__name__, DefinitionPolicy.__name__, "CustomResourceDefinition"),
    # The start of a reason, and a noun to be counted.
    *("Definition", "CRD"),
} | {
    word
    for model in (StorageMigrationSpec, MigrationSweep, MigrationPolicy)
    for field in model.model_fields.values()
    for word in getattr(field.annotation, "__args__", ())
    if isinstance(word, str)
}


def raised() -> set[str]:
    """The reasons in the code: its strings of one CamelCase word that are nothing else."""
    found = set()
    for name in RAISING:
        tree = ast.parse((ROOT / "operator/crdkeeper" / name).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(re.findall(r"^[A-Z][A-Za-z]+$", node.value))
    # Settled, Trimmed, Suspended are the names of conditions and of their reasons.
    return (found - OTHER_WORDS) | {"Settled", "Trimmed", "Suspended"}


def documented() -> set[str]:
    """The reasons in the first columns of the tables."""
    found: set[str] = set()
    tables = (ROOT / "docs/operating.md").read_text().partition("## Reasons")[2].partition("## Alerts")[0]
    for line in tables.splitlines():
        if line.startswith("| `"):
            found |= set(re.findall(r"`([A-Za-z]+)`", line.split("|")[1]))
    return found


def test_reasons_and_remedies_are_complete() -> None:
    assert documented() == raised()


@pytest.mark.parametrize("condition", [type_ for type_, _ in registry.CONDITIONS])
def test_each_reason_of_a_report_can_be_given(condition: str) -> None:
    """What docs/reports.md lists is made from these; see tests/unit/generate/test_reports.py."""
    module = dict(registry.CONDITIONS)[condition]
    source = Path(module.__file__ or "").read_text(encoding="utf-8")
    constants = [name for name, value in vars(module).items() if isinstance(value, Reason)]
    assert constants
    assert [name for name in constants if len(re.findall(rf"\b{name}\b", source)) < 2] == []


@pytest.mark.parametrize("alert", ["ObjectsRefused", "DefinitionsOutdated", "NoLeader", "OperatorDown"])
def test_each_alert_has_a_heading_to_link_to(alert: str) -> None:
    rules = (ROOT / "manifests/monitoring").glob("*.yaml")
    assert any(f"docs/operating.md#{alert.lower()}" in each.read_text() for each in rules)
    assert f"### {alert}" in (ROOT / "docs/operating.md").read_text()
