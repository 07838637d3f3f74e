"""Comments that ignore findings, by the hundred thousand."""

from crdkeeper.cli.input.ignore import of_comments

COMMENT = "# crdkeeper:ignore=field-name not ours"


def test_a_comment_is_about_its_own_line_or_the_next_that_is_no_comment() -> None:
    found = of_comments(f"a: 1 {COMMENT}\n{COMMENT}\n\n# more\nb: 2\n")
    assert [each.line for each in found.unused] == [1, 5]
    suppression = found.find("field-name", {5, 7})
    assert suppression is not None
    assert suppression.position.line == 2
    assert found.find("field-name", {2}) is None


def test_what_looks_like_one_in_a_text_is_none() -> None:
    assert not of_comments(f"a: '{COMMENT}'\nb: |\n  {COMMENT}\n").unused


def test_hundreds_of_thousands_cost_no_more_each() -> None:
    # 9 MB took hours: from each comment all lines before it and all comments below it were looked at again.
    number = 300_000
    found = of_comments(f"{COMMENT}\n" * number + "a: 1\n")
    assert len(found.unused) == number
    assert found.find("field-name", {number + 1}) is found.unused[0]
