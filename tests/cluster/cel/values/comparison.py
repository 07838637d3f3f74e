"""Evaluates expressions as rules on the real API server, and compares the results with ours.

Each expression becomes a rule. One of type bool is used as it is; for any other, the rule states that its
value is the one that we computed, including its type. A rule that passes, fails, or ends with an error
reports so by its number.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from crdkeeper.apiserver.cel.run.binding import bind
from crdkeeper.apiserver.cel.run.evaluate import compile_program
from crdkeeper.apiserver.cel.syntax.nodes import CelSyntaxError
from crdkeeper.apiserver.cel.syntax.parser import parse
from crdkeeper.apiserver.cel.types.checker import UndecidedExpression, check
from crdkeeper.apiserver.cel.types.declared import declare
from crdkeeper.apiserver.cel.types.types import Type
from crdkeeper.apiserver.cel.values.containers import NONE, OptionalValue
from crdkeeper.apiserver.cel.values.values import EvaluationError, Indeterminate, Value, type_name
from crdkeeper.apiserver.schema.decoding import ABSENT
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA
from crdkeeper.apiserver.schema.violation import Report
from crdkeeper.cluster.transport.client import Client
from tests.cluster.cel.values.literals import Unwritable, literal
from tests.cluster.harness.waiting import eventually

Json = Any
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RULE = re.compile(r"x-kubernetes-validations\[(\d+)\]")
_PREFIX = re.compile(r'^Invalid value: (?:"object": )?')
_MISMATCH = "call arguments did not match a supported operator, function or macro signature"
_NUMBER = re.compile(r"#(\d+)#$")


@dataclass
class Tally:
    """The counts of a run."""

    drawn: int
    compared: int = 0
    errors: int = 0
    left: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.compared} expressions compared, {self.errors} of them errors; {len(self.left)} left to "
            f"the server, {len(self.refused)} refused by it when the CRD was made, {len(self.wrong)} disagree"
        )


@dataclass(frozen=True)
class Case:
    """An expression, its rule, and the server's expected report: nothing, a failure or an error."""

    expression: str
    rule: str
    expected: str | None


class Evaluated:
    """Our results for expressions over an object with a schema."""

    def __init__(self, schema: Json, data: Json) -> None:
        decoded = SCHEMA.decode(schema, root("schema"), Report())
        assert decoded is not ABSENT
        declared = declare(decoded, root=False)
        assert declared is not None
        self._variables: dict[str, Type] = {"self": declared.type()}
        self._self = bind(data, decoded)

    def value(self, expression: str) -> Value:
        """Our value. Raises EvaluationError, Indeterminate."""
        tree = parse(expression)
        overloads = {}
        with suppress(UndecidedExpression):
            overloads = dict(check(tree, self._variables, stored=False).overloads)
        return compile_program(tree, overloads).evaluate({"self": self._self})

    def case(self, expression: str) -> Case:
        """The rule for an expression. Raises Indeterminate."""
        rule = expression
        try:
            value = self.value(expression)
            if type(value) is not bool:
                rule = _revealing(expression, value)
                value = self.value(rule)
        except EvaluationError as error:
            if rule is expression:
                rule = f"dyn({expression}) == 1"
            return Case(expression, rule, _worded(error.message))
        return Case(expression, rule, None if value else "")


def _revealing(expression: str, value: Value) -> str:
    """A rule that is true if the expression has the value. The server must not consider it expensive."""
    if value is NONE:
        return f"!{expression}.hasValue()"
    if type(value) is OptionalValue:
        return f"{expression}.hasValue() && {_revealing(f'{expression}.value()', value.value)}"
    if type_name(value) in ("net.IP", "net.CIDR"):
        return f"{expression} == {literal(value)}"
    return f"type(dyn({expression})) == {type_name(value)} && dyn({expression}) == {literal(value)}"


def _worded(error: str) -> str:
    if error.startswith("no such overload"):
        return f"'{error}': {_MISMATCH} for rule: "
    return f"{error} evaluating rule: "


def cases(evaluated: Evaluated, expressions: list[str], tally: Tally) -> list[Case]:
    """The rules for those expressions whose result we know."""
    made = []
    for each in expressions:
        try:
            made.append(evaluated.case(each))
        except (Indeterminate, Unwritable, CelSyntaxError) as left:
            tally.left.append(f"{each}: {type(left).__name__} {left}")
    return made


def _definition(group: str, schema: Json, made: list[Case]) -> Json:
    rules = [{"rule": each.rule, "message": f"#{at}#"} for at, each in enumerate(made)]
    spec = {**schema, "x-kubernetes-validations": rules}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"values.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "values", "kind": "Value"},
            "scope": "Cluster",
            "versions": [version],
        },
    }


async def compare(
    client: Client, group: str, schema: Json, data: Json, made: list[Case], tally: Tally
) -> None:
    """Has the server evaluate all rules."""
    attempts = 4
    """For an API server that is busy: it compiles hundreds of rules."""
    while True:
        definition = _definition(group, schema, made)
        answer = await client.send("POST", CRDS, content=orjson.dumps(definition))
        # One that timed out may have created it.
        if answer.code in (201, 409):
            break
        if answer.code == 504 and attempts:
            attempts -= 1
            continue
        found = {int(number): "" for number in _RULE.findall(str(answer.json().get("message")))}
        assert found, answer.json()
        tally.refused += [f"{made[at].rule}" for at in sorted(found)]
        made = [each for at, each in enumerate(made) if at not in found]
    try:
        await _judge(client, group, data, made, tally)
    finally:
        await client.send("DELETE", f"{CRDS}/values.{group}")


async def _judge(client: Client, group: str, data: Json, made: list[Case], tally: Tally) -> None:
    value = {"apiVersion": f"{group}/v1", "kind": "Value", "metadata": {"name": "v"}, "spec": data}
    path = f"/apis/{group}/v1/values?dryRun=All"

    async def served() -> Json:
        answer = await client.send("POST", path, content=orjson.dumps(value))
        return answer.json() if answer.code in (201, 422) else None

    body = await eventually(served)
    said: dict[int, str] = {}
    for cause in (body.get("details") or {}).get("causes") or ():
        message = cause["message"]
        number = _NUMBER.search(message)
        assert number, message
        said[int(number[1])] = _PREFIX.sub("", message[: number.start()])
    for at, case in enumerate(made):
        tally.compared += 1
        tally.errors += bool(case.expected)
        if said.get(at) != case.expected:
            tally.wrong.append(
                f"{case.expression}\n    rule   {case.rule}\n"
                f"    we     {case.expected}\n    server {said.get(at)}"
            )
