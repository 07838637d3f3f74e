"""docs/operating.md has every reason that a condition or an Event can have, and no other."""

import ast
import re
from pathlib import Path

from crdkeeper.api.definitionpolicy import DefinitionPolicy, DefinitionProtection, MigrationPolicy
from crdkeeper.api.storagemigration import MigrationSweep, StorageMigration, StorageMigrationSpec
from crdkeeper.core.migration.protocol import STEPS

ROOT = Path(__file__).parents[2]
RAISING = (
    "core/migration/protocol.py",
    "core/migration/record.py",
    "core/migration/settle.py",
    "core/finalizers/standing.py",
    "core/policy/migrations.py",
    "operations/migration/run.py",
    "operations/migration/sharedpass.py",
    "operations/migration/sweep.py",
    "controllers/definitionpolicy/controller.py",
    "controllers/definitionpolicy/finalizers.py",
    "operations/finalizers/releasing.py",
    "core/builtins/plan.py",
    "core/builtins/standing.py",
    "controllers/builtinpolicy/controller.py",
)
OTHER_WORDS = {
    *STEPS,
    *(
        "Succeeded",
        "Suspended",
        "ManagedFieldsCurrent",
        "Ready",
        "EncryptionObserved",
        "FinalizersReleased",
    ),  # conditions
    *("True", "False", "Unknown", "Normal", "Warning"),
    *(StorageMigration.__name__, DefinitionPolicy.__name__, "CustomResourceDefinition"),
    # The beginning of a reason, and a noun to be counted.
    *("Definition", "CRD"),
} | {
    word
    for model in (StorageMigrationSpec, MigrationSweep, MigrationPolicy, DefinitionProtection)
    for field in model.model_fields.values()
    for word in getattr(field.annotation, "__args__", ())
    if isinstance(word, str)
}


def raised() -> set[str]:
    """The reasons in the code: strings of one CamelCase word that have no other meaning."""
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


def test_each_alert_has_a_heading_to_link_to() -> None:
    rules = (ROOT / "manifests/monitoring/prometheusrule.yaml").read_text()
    documented = (ROOT / "docs/operating.md").read_text().partition("## Alerts")[2].partition("\n## ")[0]
    assert re.findall(r"alert: Crdkeeper(\w+)", rules) == re.findall(r"(?m)^### (\w+)$", documented)
