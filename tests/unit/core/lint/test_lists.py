"""What a description says about the names in a list, and what about those within its entries."""

import pytest

from tests.unit.core.lint.definitions import TEXT, definition, ids, schema, version

NAMED = {"type": "object", "description": "One.", "properties": {"name": TEXT}, "required": ["name"]}


def reported(description: str) -> bool:
    names = {"type": "array", "maxItems": 2, "items": NAMED, "description": description}
    return "list-of-named" in ids(definition(version(schema({"x": names}))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Names are unique.", True),
        ("Names in each group are unique.", False),
        ("Unique in each group. Sorted.", False),
        ("All are unique. Two in each group.", True),
        ("Two in each group. All are unique.", True),
        ("Two in each group. Unique within each of them", False),
        ("Sorted\nand unique of each, of each kind", False),
        ("...unique", True),
        ("...Unique of each.", False),
        ("", False),
    ],
)
def test_only_a_sentence_about_the_entries_themselves_counts(text: str, expected: bool) -> None:
    assert reported(text) is expected


def test_a_long_text_without_a_period_takes_no_longer_than_others() -> None:
    # A search from each of its characters to its end would take hours.
    assert not reported("a " * 200_000)
    assert reported("a " * 200_000 + "unique")
