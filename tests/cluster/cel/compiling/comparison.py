"""Puts many rules into one CRD, sends it to the API server, and compares the errors of each rule.

The server reports a cost only if it exceeds a limit. So each rule is put below a list that is just long
enough for its cost, by our estimate, to be between 1 and 1.5 times the limit: there the server reports six
digits.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crdkeeper.apiserver.cel.compilation import (
    CONTRIBUTED,
    CRD_COST_LIMIT,
    EXPRESSION_COST_LIMIT,
    Compilation,
    RulePlace,
    compile_rules,
    cost_problem,
)
from crdkeeper.apiserver.cel.cost.estimates import MAX
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.props import SCHEMA, VALIDATIONS
from crdkeeper.apiserver.schema.violation import Report

_STEP = 1.4
_ROOT = "spec.validation.openAPIV3Schema"
_SELF_TYPE = re.compile(r"selfType\d+")

Rule = Mapping[str, Any]


@dataclass(slots=True)
class Expectation:
    """Our result for one CRD: for each field the details of its errors; and what we leave to the server."""

    crd: dict[str, Any]
    rules: dict[str, Rule] = field(default_factory=dict)
    """The rules by field."""
    said: set[tuple[str, str]] = field(default_factory=set)
    inexact: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    total: int = 0


def expected(schema: Mapping[str, Any], rules: Sequence[Rule]) -> Expectation:
    """A CRD with all rules on a schema, each below a list of a length that shows its cost."""
    lists: dict[int, list[Rule]] = {}
    for rule, compiled in zip(rules, _compiled(schema, rules), strict=True):
        lists.setdefault(_length(compiled), []).append(rule)
    properties = {
        f"at{length}": {
            "type": "array",
            "maxItems": length,
            "items": {**schema, VALIDATIONS: [dict(each) for each in chosen]},
        }
        for length, chosen in lists.items()
    }
    return judged(_crd({"type": "object", "properties": properties}))


def _compiled(schema: Mapping[str, Any], rules: Sequence[Rule]) -> list[Compilation]:
    root = RulePlace.root({"type": "object", "properties": {"self": schema}})
    return compile_rules(root.field("self", _decoded({**schema, VALIDATIONS: list(rules)})))


def _decoded(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    decoded: Mapping[str, Any] = SCHEMA.decode(dict(schema), Path("", ()), Report())
    return decoded


def _length(compiled: Compilation) -> int:
    cost = compiled.total_cost
    if not 0 < cost < EXPRESSION_COST_LIMIT:
        return 1
    step = math.floor(math.log(cost, _STEP))
    return max(1, math.floor(EXPRESSION_COST_LIMIT * 1.49 / _STEP ** (step + 1)))


def _crd(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.celcompile.example.com"},
        "spec": {
            "group": "celcompile.example.com",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": dict(schema)}}
            ],
        },
    }


def judged(crd: dict[str, Any]) -> Expectation:
    """Our result for the expressions of a CRD with one version."""
    result = Expectation(crd)
    schema = _decoded(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    _judge(RulePlace.root(schema), _ROOT, None, result)
    name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    _say(result, _ROOT, cost_problem(name, result.total, CRD_COST_LIMIT))
    return result


def _judge(place: RulePlace, path: str, unordered: str | None, result: Expectation) -> None:
    schema = place.schema
    inner = path if unordered is None and schema.get("type") == "array" else unordered
    for name, each in schema.get("properties", {}).items():
        _judge(place.field(name, each), f"{path}.properties[{name}]", inner, result)
    if isinstance(schema.get("additionalProperties"), dict):
        values = schema["additionalProperties"]
        _judge(place.values(values), f"{path}.additionalProperties", inner, result)
    if isinstance(schema.get("items"), dict):
        _judge(place.items(schema["items"]), f"{path}.items", inner, result)
    if not schema.get(VALIDATIONS):
        return
    for index, compiled in enumerate(compile_rules(place)):
        at = f"{path}.{VALIDATIONS}[{index}]"
        result.rules[at] = schema[VALIDATIONS][index]
        _judge_rule(compiled, at, result)
        if compiled.rule is not None and compiled.rule.left is None:
            _judge_old_self(schema[VALIDATIONS][index], compiled.rule.uses_old_self, at, unordered, result)


def _judge_rule(compiled: Compilation, at: str, result: Expectation) -> None:
    rule, message = compiled.rule, compiled.message
    assert rule is not None
    if rule.left is not None:
        result.left.add(at)
        return
    _say(
        result, f"{at}.rule", cost_problem("estimated rule cost", compiled.total_cost, EXPRESSION_COST_LIMIT)
    )
    result.total = min(result.total + compiled.total_cost, MAX)
    _say(result, f"{at}.rule", rule.problem)
    if not rule.exact:
        result.inexact.add(f"{at}.rule")
    if message is None:
        return
    if message.left is not None:
        result.left.add(at)
        return
    _say(result, f"{at}.messageExpression", message.problem)
    if not message.exact:
        result.inexact.add(f"{at}.messageExpression")
    if message.problem is None:
        problem = cost_problem("estimated messageExpression cost", message.cost, EXPRESSION_COST_LIMIT)
        _say(result, f"{at}.messageExpression", problem)
        result.total = min(result.total + message.cost, MAX)


def _judge_old_self(rule: Rule, used: bool, at: str, unordered: str | None, result: Expectation) -> None:
    if used and unordered is not None:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {unordered}"
        _say(result, f"{at}.rule", detail)
    if not used and "optionalOldSelf" in rule:
        _say(result, f"{at}.optionalOldSelf", "may not be set if oldSelf is not used in rule")


def _say(result: Expectation, at: str, detail: str | None) -> None:
    if detail is not None:
        result.said.add((at, detail))


def disagreements(expectation: Expectation, causes: Sequence[tuple[str, str]]) -> list[str]:
    """What only one side reports about a CRD, with the rules in question."""
    server: dict[str, list[str]] = {}
    for at, message in causes:
        if CONTRIBUTED in message:
            # Of equal costs, the server names a random one: it iterates over properties in no order.
            continue
        server.setdefault(at, []).append(_SELF_TYPE.sub("selfType", message))
    ours: dict[str, list[str]] = {}
    for at, detail in expectation.said:
        ours.setdefault(at, []).append(detail)
    found = []
    for at in sorted(server.keys() | ours.keys()):
        stem = at.rpartition(".")[0]
        if stem in expectation.left or (at == _ROOT and expectation.left):
            continue
        theirs, mine = server.get(at, []), ours.get(at, [])
        if at in expectation.inexact:
            same = len(theirs) >= 1
        else:
            same = len(theirs) == len(mine) and all(
                any(_is(message, detail) for message in theirs) for detail in mine
            )
        if not same:
            rule = expectation.rules.get(stem)
            found.append(f"{rule}\n  at {at}\n  server: {_cut(theirs)}\n  we: {mine}\n")
    return found


def _is(message: str, detail: str) -> bool:
    return message == f"Forbidden: {detail}" or message.endswith(f": {detail}")


def _cut(messages: Sequence[str]) -> list[str]:
    return [each[-700:] for each in messages]
