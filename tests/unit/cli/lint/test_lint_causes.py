"""`crdkeeper lint` prints one line for the errors that one tool caused, such as references that it left."""

import json

from crdkeeper.cli.lint.textoutput import MOST_LINES
from tests.unit.cli.lint.test_lint import GOOD, lint

FIELD = """\
              {name}:
                {key}: '#/definitions/v1.SecretReference'
"""


def with_references(number: int, key: str = "$ref") -> str:
    return GOOD + "".join(FIELD.format(name=f"ref{i}", key=key) for i in range(number))


def lines(text: str) -> list[str]:
    return [each for each in lint("-", stdin=text).stdout.splitlines() if "[unsupported-keyword]" in each]


AT = "spec.validation.openAPIV3Schema.properties[spec].properties"


def test_a_keyword_that_the_server_refuses_is_one_line() -> None:
    refused = f"error[unsupported-keyword]: {AT}[ref0].$ref: Forbidden: $ref is not supported"
    assert lines(with_references(1)) == [f"-:25:17: {refused}"]
    assert lines(with_references(2)) == [f"-:25:17: {refused} (and 1 more such field)"]
    assert lines(with_references(9)) == [f"-:25:17: {refused} (and 8 more such fields)"]
    assert len(lines(with_references(MOST_LINES + 9))) == 1


def test_another_keyword_or_another_definition_is_another_line() -> None:
    both = with_references(2) + FIELD.format(name="other", key="id")
    assert [each.partition(": Forbidden: ")[2] for each in lines(both)] == [
        "$ref is not supported (and 1 more such field)",
        "id is not supported",
    ]
    second = with_references(2).replace("widgets", "gadgets").replace("Widget", "Gadget")
    assert len(lines(f"{with_references(2)}---\n{second}")) == 2


def test_programs_get_each() -> None:
    text = with_references(3)
    document = json.loads(lint("-o", "json", "-", stdin=text).stdout)
    refused = [each["field"] for each in document["findings"] if each["id"] == "unsupported-keyword"]
    assert refused == [f"{AT}[ref{i}].$ref" for i in range(3)]
    (run,) = json.loads(lint("-o", "sarif", "-", stdin=text).stdout)["runs"]
    (one,) = [each for each in run["results"] if each["ruleId"] == "unsupported-keyword"]
    assert len(one["relatedLocations"]) == 2
    assert "1 CRD: 3 errors," in lint("-", stdin=text).stderr


def test_other_errors_need_a_fix_each() -> None:
    text = GOOD + "".join(f"              field{i}:\n                maxLength: 3\n" for i in range(3))
    found = [each for each in lint("-", stdin=text).stdout.splitlines() if "error[type]" in each]
    assert len(found) == 3
