"""`crdkeeper lint` on input designed to take for ever, or all memory: it ends and says what it left out.

Without limits, each of these takes minutes or gigabytes.
"""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crdkeeper.cli import main

RULES = "x-kubernetes-validations"
TEXTS = {"type": "array", "items": {"type": "string"}}


def lint(text: str) -> Result:
    result = CliRunner().invoke(main, ["lint", "-o", "json", "-"], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def crd(schema: Any) -> str:
    root = {"type": "object", "properties": {"spec": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}}
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {**spec, "versions": [version]},
        }
    )


def rule(text: str) -> Any:
    return {**TEXTS, RULES: [{"rule": text, "message": "m"}]}


def nested(keyword: str, depth: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, keyword: [{"required": ["a"]}]}
    return schema


def billion_laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (billion_laughs(), "more than 300,000 values, aliases expanded"),
        ("a: &a {b: *a}", "the alias *a is inside its own anchor"),
        ("[" * 100_000, "nested deeper than 300 levels"),
        ("a:\n" + "- x\n" * 2_500_000, "more than 300,000 values, aliases expanded"),
        ("\x00" * 10_000_000, "not YAML"),
        ("a: " + "x" * 10_000_000, "contains no CustomResourceDefinition"),
    ],
    ids=["laughs", "cycle", "deep", "long", "binary", "text"],
)
def test_no_crd(text: str, words: str) -> None:
    result = lint(text)
    assert result.exit_code == 2
    said = json.loads(result.stdout)["unreadable"]
    assert words in said[0]["message"]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000 + "true" + ")" * 50_000,
        "1" + "+1" * 30_000 + " > 0",
        "true" + " && true" * 30_000,
        "[" * 3_000 + "]" * 3_000 + " == []",
        "true ? " * 3_000 + "true" + " : false" * 3_000,
        "".join(f"self.all(x{i}, " for i in range(200)) + "true" + ")" * 200,
        "'" + "a" * 1_000_000 + "' == 'b'",
        '"' + "%s" * 20_000 + '".format([self]) == "x"',
        "".join(f"self.map(x{i}, " for i in range(12)) + "true" + ")" * 12 + ".size() > 0",
    ],
    ids=["brackets", "sum", "and", "lists", "choices", "loops", "text", "format", "dear"],
)
def test_expressions(text: str) -> None:
    document = json.loads(lint(crd(rule(text))).stdout)
    found = [each["id"] for each in document["findings"]] + list(document["unchecked"]["counts"])
    assert {"cel", "cel-cost"} & set(found)


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        # RE2 takes half a minute for one, and an hour for the other.
        ({"type": "string", "pattern": "(.{1,500}){2}" * 70, "default": "a" * 20_000}, "default-value"),
        (
            {
                "type": "object",
                "properties": {
                    f"f{i}": {"type": "string", "pattern": f"(x{i}|.{{1,900}}){{1}}y", "default": "a" * 1000}
                    for i in range(300)
                },
            },
            "default-value",
        ),
        ({"type": "string", "pattern": "((a{100}){10}){1}" * 2_000}, "pattern"),
    ],
    ids=["slow", "many", "long"],
)
def test_patterns(schema: Any, left: str) -> None:
    assert left in json.loads(lint(crd(schema)).stdout)["unchecked"]["counts"]


@pytest.mark.parametrize(
    "schema",
    [
        nested("anyOf", 60),
        nested("oneOf", 60),
        {"type": "object", "properties": {"a": {"type": "array", "default": [[[[1]]]] * 20_000}}},
        {"type": "string", "enum": [f"v{i}" for i in range(50_000)], "default": "nope"},
        {"type": "object", "properties": {f"field{i}": {"type": "string"} for i in range(40_000)}},
        {
            "type": "object",
            "properties": {f"f{i}": rule("self.all(x, self.all(y, x == y))") for i in range(1_000)},
        },
    ],
    ids=["anyOf", "oneOf", "default", "enum", "fields", "rules"],
)
def test_schemas(schema: Any) -> None:
    result = lint(crd(schema))
    assert result.exit_code in (0, 1)
    assert json.loads(result.stdout)["checked"] == 1
