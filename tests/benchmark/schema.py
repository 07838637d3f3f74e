"""Objects validated and CEL rules evaluated per second, compared to a naive use of libraries.

`make bench-schema` prints it. All contestants do the same work in the same process, alternating, so that
other load on the machine affects all of them. Absolute figures depend on the machine; the ratios count.
"""

import argparse
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import celpy
import jsonschema
from celpy.adapter import json_to_cel

from crdkeeper.apiserver.objects.objectnode import ObjectNode
from crdkeeper.apiserver.objects.objectrules import RuleWalk
from crdkeeper.apiserver.objects.objectschema import ObjectSchema
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.fieldpath import root
from crdkeeper.apiserver.schema.props import SCHEMA, VALIDATIONS
from crdkeeper.apiserver.schema.violation import Report
from tests.benchmark.command import noise_shown, show
from tests.cluster.harness.customkind import SPEC

LEGEND: Final = """\
validate      the OpenAPI schema alone: is the object valid?
admit         all that the API server does on a request: prune, default, validate, list types, metadata.
compiled      the schema or expression is prepared once for all objects.
naive         the library's plain call for each object, which prepares it each time."""

OBJECT: Final[dict[str, Any]] = {
    "apiVersion": "example.com/v1",
    "kind": "Database",
    "metadata": {"name": "orders", "labels": {"team": "shop"}},
    "spec": {
        "engine": "postgres",
        "replicas": 3,
        "storage": {"size": "10Gi", "class": "fast"},
        "users": [{"name": f"user-{i}", "roles": ["reader", "writer"]} for i in range(5)],
        "note": "the orders of the shop",
    },
}
RULES: Final = (
    "self.replicas <= 5",
    "self.engine == 'postgres' || self.replicas == 1",
    "self.users.all(u, u.name.startsWith('user-') && u.roles.size() > 0)",
)

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Contestant:
    """Something that does the work of a section once per call."""

    name: str
    work: Work
    operations: int = 1
    """How many are validated in one call."""


def _schema(*rules: str) -> Mapping[str, Any]:
    spec: dict[str, Any] = {**SPEC, "required": ["engine"]}
    if rules:
        spec[VALIDATIONS] = [{"rule": each} for each in rules]
    return {"type": "object", "properties": {"spec": spec}}


def _decoded(schema: Mapping[str, Any]) -> Any:
    return SCHEMA.decode(dict(schema), root("schema"), Report())


def validations() -> list[Contestant]:
    """Validation of one object by its OpenAPI schema."""
    schema = _schema()
    validator, whole = Validator(_decoded(schema)), ObjectSchema.of(_decoded(schema))
    prepared = jsonschema.Draft4Validator(schema)
    assert not validator.check(OBJECT) and whole.admit(OBJECT).accepted and prepared.is_valid(OBJECT)

    def naive() -> None:
        jsonschema.validate(OBJECT, schema, jsonschema.Draft4Validator)

    return [
        Contestant("crdkeeper, validate, compiled", lambda: validator.check(OBJECT)),
        Contestant("crdkeeper, admit, compiled", lambda: whole.admit(OBJECT)),
        Contestant("jsonschema, validate, compiled", lambda: prepared.is_valid(OBJECT)),
        Contestant("jsonschema, validate, naive", naive),
    ]


def evaluations() -> list[Contestant]:
    """Evaluation of rules for one object, with self made of its JSON each time."""
    rules = RuleWalk(ObjectNode(_decoded(_schema(*RULES))))
    assert rules.check(OBJECT, None, None) == ([], [])
    environment = celpy.Environment()
    programs = [environment.program(environment.compile(each)) for each in RULES]

    def compiled() -> None:
        activation = {"self": json_to_cel(OBJECT["spec"])}
        for each in programs:
            assert each.evaluate(activation)

    def naive() -> None:
        for each in RULES:
            fresh = celpy.Environment()
            program = fresh.program(fresh.compile(each))
            assert program.evaluate({"self": json_to_cel(OBJECT["spec"])})

    return [
        Contestant("crdkeeper, compiled", lambda: rules.check(OBJECT, None, None), len(RULES)),
        Contestant("cel-python, compiled", compiled, len(RULES)),
        Contestant("cel-python, naive", naive, len(RULES)),
    ]


def measured(contestants: Sequence[Contestant], rounds: int, seconds: float) -> list[list[float]]:
    """Operations per second of each contestant in each round."""
    rates: list[list[float]] = [[] for _ in contestants]
    for _ in range(rounds):
        for contestant, found in zip(contestants, rates, strict=True):
            found.append(_rate(contestant, seconds))
    return rates


def _rate(contestant: Contestant, seconds: float) -> float:
    gc.collect()
    calls, batch, begin = 0, 1, time.perf_counter()
    while (spent := time.perf_counter() - begin) < seconds:
        for _ in range(batch):
            contestant.work()
        calls += batch
        batch = min(batch * 2, 1000)
    return calls * contestant.operations / spent


def table(title: str, contestants: Sequence[Contestant], rates: Sequence[Sequence[float]]) -> list[str]:
    """The figures of a section; the others are compared to the first contestant."""
    lines = [f"{title:<34}{'per second (lowest-highest)':>34}{'we are':>14}"]
    for contestant, own in zip(contestants, rates, strict=True):
        spread = f"{median(own):,.0f} ({min(own):,.0f}-{max(own):,.0f})"
        factor = median(first / each for first, each in zip(rates[0], own, strict=True))
        lines.append(f"{contestant.name:<34}{spread:>34}{f'{factor:,.1f} times':>14}")
    return lines


def main() -> None:
    """Prints both sections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each contestant in each round")
    arguments = parser.parse_args()
    with noise_shown():
        for title, contestants in (("validations", validations()), ("CEL evaluations", evaluations())):
            rates = measured(contestants, arguments.rounds, arguments.seconds)
            show(table(title, contestants, rates))
    print(LEGEND)


if __name__ == "__main__":
    main()
