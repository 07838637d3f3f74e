"""Parts of a schema that conflict with the fields of every composite.

The API server accepts most of them and later rejects objects, or a rule changes its meaning.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from crdkeeper.apiserver.objects.effort import StepAllowance
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.props import MAP_TYPE, VALIDATIONS
from crdkeeper.core.composition import problem as problems
from crdkeeper.core.composition.asrule import counting_rule, junctor_rule
from crdkeeper.core.composition.injected import (
    SETTINGS,
    STATUS_FIELDS,
    first_status_errors,
)
from crdkeeper.core.composition.problem import CompositeProblem
from crdkeeper.core.composition.wholeuse import uses_whole

JUNCTORS: Final = ("allOf", "anyOf", "oneOf", "not")
_COUNTS: Final = ("minProperties", "maxProperties")
_SHOWN: Final = 3

Schema = Mapping[str, Any]


def traps(schema: Schema, path: Path, parsing: StepAllowance) -> Iterator[CompositeProblem]:
    """All of them in a version's schema; `path` is its path in the definition.

    `parsing` is spent on the characters of rules.
    """
    properties = schema.get("properties")
    known: Schema = properties if isinstance(properties, dict) else {}
    yield from _at_root(schema, path, known, parsing)
    at = path.child("properties")
    if "spec" in known:
        yield from _in_part(known["spec"], at.key("spec"), (SETTINGS,))
        yield from _in_spec(known["spec"], at.key("spec"), parsing)
    if "status" in known:
        yield from _in_part(known["status"], at.key("status"), STATUS_FIELDS)
    yield from _in_first_status(schema, path)


def _at_root(schema: Schema, path: Path, known: Schema, parsing: StepAllowance) -> Iterator[CompositeProblem]:
    for keyword in JUNCTORS:
        if keyword in schema:
            rule = junctor_rule(keyword, schema[keyword], known)
            yield CompositeProblem(
                problems.ROOT, path.child(keyword), f"{keyword} is not allowed here{_written(rule)}"
            )
    for keyword in _COUNTS:
        if keyword in schema:
            yield CompositeProblem(problems.ROOT, path.child(keyword), f"{keyword} is not allowed here")
    if MAP_TYPE in schema:
        message = f"{MAP_TYPE} is not allowed here"
        yield CompositeProblem(problems.ROOT, path.child(MAP_TYPE), message)
    yield from _whole_uses(schema, path, "spec", parsing)


def _in_part(part: object, path: Path, reserved: Sequence[str]) -> Iterator[CompositeProblem]:
    """`part` is the schema of spec or status."""
    if not isinstance(part, dict):
        return  # As the API server reports for the CRD.
    if part.get("type") != "object":
        found = part.get("type")
        message = f"the type is {found}, not object" if found else "it has no type, but must be an object"
        yield CompositeProblem(problems.NOT_AN_OBJECT, path.child("type"), message)
        return
    if "additionalProperties" in part:
        yield CompositeProblem(problems.MAP, path.child("additionalProperties"), "it is a map")
    properties = part.get("properties")
    known: Schema = properties if isinstance(properties, dict) else {}
    for name in reserved:
        if name in known:
            yield CompositeProblem(
                problems.RESERVED, path.child("properties").key(name), f"{name} is reserved", refused=False
            )
    own = [name for name in known if name not in reserved]
    yield from _counting(part, path, own, " and ".join(reserved))


def _counting(part: Schema, path: Path, own: Sequence[str], added: str) -> Iterator[CompositeProblem]:
    """Keywords about all fields of spec or status, also within junctors; `own` are the user's fields."""
    for keyword in _COUNTS:
        limit = part.get(keyword)
        if isinstance(limit, int):
            rule = counting_rule(keyword, limit, own)
            message = f"{keyword} also counts {added}{_written(rule)}"
            yield CompositeProblem(problems.COUNTED, path.child(keyword), message)
    if "enum" in part:
        yield CompositeProblem(problems.COUNTED, path.child("enum"), f"no value has {added}")
    for keyword in JUNCTORS:
        branches = part.get(keyword)
        if isinstance(branches, dict):
            yield from _counting(branches, path.child(keyword), own, added)
        for i, each in enumerate(branches if isinstance(branches, list) else ()):
            if isinstance(each, dict):
                yield from _counting(each, path.child(keyword).index(i), own, added)


def _in_spec(spec: object, path: Path, parsing: StepAllowance) -> Iterator[CompositeProblem]:
    if not isinstance(spec, dict):
        return
    if spec.get(MAP_TYPE) == "atomic":
        yield CompositeProblem(problems.ATOMIC, path.child(MAP_TYPE), "spec is atomic")
    yield from _whole_uses(spec, path, None, parsing)


def _whole_uses(
    schema: Schema, path: Path, field: str | None, parsing: StepAllowance
) -> Iterator[CompositeProblem]:
    rules = schema.get(VALIDATIONS)
    for i, each in enumerate(rules if isinstance(rules, list) else ()):
        rule = each.get("rule") if isinstance(each, dict) else None
        if not isinstance(rule, str):
            continue
        at = path.child(VALIDATIONS).index(i).child("rule")
        try:
            parsing.spend(len(rule))
        except UndecidedValue:
            message = "there are too many rules to say which, from here on, are also about spec.crdkeeper"
            yield CompositeProblem(problems.WHOLE, at, message, refused=False)
            return
        if uses_whole(rule, field):
            message = "the rule is also about spec.crdkeeper"
            yield CompositeProblem(problems.WHOLE, at, message, refused=False)


def _in_first_status(schema: Schema, path: Path) -> Iterator[CompositeProblem]:
    required = schema.get("required")
    if isinstance(required, list) and "status" in required:
        message = "status is required, but a new object has none: no object could be created"
        yield CompositeProblem(problems.STATUS_REQUIRED, path.child("required"), message)
    errors = first_status_errors(schema)
    if errors:
        more = f" (and {len(errors) - _SHOWN} more)" if len(errors) > _SHOWN else ""
        message = f"at first, status is refused: {'; '.join(errors[:_SHOWN])}{more}"
        at = path.child("properties").key("status")
        yield CompositeProblem(problems.STATUS_REQUIRED, at, message, refused=False)


def _written(rule: str | None) -> str:
    return "" if rule is None else f'; instead, write in x-kubernetes-validations: rule: "{rule}"'
