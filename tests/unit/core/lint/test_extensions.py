"""Keys of a schema that an author means for other tools, and misspelt ones of Kubernetes."""

import pytest

from crdkeeper.core.lint.linter import lint
from crdkeeper.core.lint.severity import Severity
from tests.unit.core.lint.definitions import TEXT, definition, schema, version

DROPPED = ": an extension, which the API server drops"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("x-ui-order", Severity.INFO),
        ("x-", Severity.INFO),
        ("x-widget", Severity.INFO),
        ("x-kubernetes-list-typ", Severity.WARNING),
        ("x-Kubernetes-list-type", Severity.WARNING),
        ("x-kubernetes_list_type", Severity.WARNING),
        ("x-kuberntes-list-type", Severity.WARNING),
        ("x-list-type", Severity.WARNING),
        ("x-preserve-unknown-fields", Severity.WARNING),
        ("x-k8s-group", Severity.WARNING),
        ("xdoc", Severity.WARNING),
        ("X-doc", Severity.WARNING),
        ("patern", Severity.WARNING),
    ],
)
def test_an_extension_is_meant_by_its_author(key: str, expected: Severity) -> None:
    crd = definition(version(schema({"x-named": {**TEXT, key: "Said."}})))
    (found,) = [each for each in lint(crd) if each.rule.id == "unknown-field"]
    assert (found.severity, found.message.endswith(f'{key}"{DROPPED}')) == (
        expected,
        expected is Severity.INFO,
    )


def test_only_schemas_have_extensions() -> None:
    crd = definition({**version(), "x-ui-order": "Said."})
    crd["spec"]["x-ui"] = "Said."
    assert [(each.rule.id, each.severity) for each in lint(crd)] == [
        ("unknown-field", Severity.WARNING),
        ("unknown-field", Severity.WARNING),
    ]
