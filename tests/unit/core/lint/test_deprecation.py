"""What the API server's automatic warning about a deprecated version names, and what it leaves out."""

import pytest

from crdkeeper.core.lint.linter import lint
from tests.unit.core.lint.definitions import definition, version

WITHOUT = "is deprecated, and the automatic warning does not say what to use instead: "


def message(*names: str, old: str, deprecated: tuple[str, ...] = (), unserved: tuple[str, ...] = ()) -> str:
    versions = [
        version(
            name=each,
            storage=each == names[-1],
            served=each not in unserved,
            deprecated=True if each == old or each in deprecated else None,
            deprecationWarning=f"Use {old}." if each in deprecated else None,
        )
        for each in names
    ]
    found = [each.message for each in lint(definition(*versions)) if each.rule.id == "deprecation-text"]
    return found[0].removeprefix(f"{old} {WITHOUT}") if found else ""


@pytest.mark.parametrize(
    ("names", "old", "deprecated", "unserved", "expected"),
    [
        (("v1",), "v1", (), (), "no other version is served"),
        (("v1", "v2"), "v1", (), ("v2",), "no other version is served"),
        (("v1", "v2"), "v1", ("v2",), (), "v2 is deprecated, too"),
        (("v1", "v3", "v2"), "v1", ("v2", "v3"), (), "v3 is deprecated, too"),
        (("v1", "v2"), "v2", (), (), "v1 ranks below it"),
        (("v1", "v2"), "v2", ("v1",), (), "v1 is deprecated, too"),
        (("v1beta2", "v3alpha1"), "v1beta2", (), (), "v3alpha1 ranks below it"),
        (("v1beta2", "v2alpha1", "v3alpha1"), "v1beta2", ("v3alpha1",), (), "v2alpha1 ranks below it"),
        (("v1", "v2"), "v1", (), (), ""),
        (("v1", "v2", "v3"), "v1", ("v3",), (), ""),
        (("old", "v1alpha1"), "old", (), (), ""),
        (("v1alpha1", "new"), "v1alpha1", (), (), "new ranks below it"),
        (("b", "a"), "b", (), (), ""),
        (("a", "b"), "a", (), (), "b ranks below it"),
    ],
)
def test_the_message_says_why_the_automatic_warning_names_nothing(
    names: tuple[str, ...], old: str, deprecated: tuple[str, ...], unserved: tuple[str, ...], expected: str
) -> None:
    assert message(*names, old=old, deprecated=deprecated, unserved=unserved) == expected
