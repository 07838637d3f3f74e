"""Whether the defaults of a structural schema are acceptable: pruned, with valid metadata, and valid.

As in ValidateDefaults and PruneDefaults of k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting.
"""

from dataclasses import replace
from typing import Any, Final

from crdkeeper.apiserver.cel.expressions import OBJECT_LIMIT, Account
from crdkeeper.apiserver.objects.effort import limited, spend_on_nodes
from crdkeeper.apiserver.objects.godecode import metadata_error
from crdkeeper.apiserver.objects.jsonvalue import same
from crdkeeper.apiserver.objects.objectmeta import coerce
from crdkeeper.apiserver.objects.objectmetarules import check_embedded
from crdkeeper.apiserver.objects.objectnode import META_FIELDS, ObjectNode, copied
from crdkeeper.apiserver.objects.objectrules import RuleWalk
from crdkeeper.apiserver.objects.prune import pruned
from crdkeeper.apiserver.objects.surrounding import Surrounding
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema import rules
from crdkeeper.apiserver.schema.fieldpath import Path, root
from crdkeeper.apiserver.schema.finding import (
    FieldErrors,
    Step,
    UndecidedValue,
    openapi_violations,
    structural_violations,
)
from crdkeeper.apiserver.schema.props import EMBEDDED, VALIDATIONS, Schema, is_plain, subschemas
from crdkeeper.apiserver.schema.structural import conversion_error, violations
from crdkeeper.apiserver.schema.violation import Report, Violation

_MOST_STEPS = 50_000_000
"""For all defaults of a schema: five seconds for malicious ones. Of 104 CRDs in use, the schema that needs
most needs 750,000 for its patterns.
"""


def check_defaults(schema: Schema, path: Path, report: Report, *, must_be_pruned: bool = True) -> None:
    """Report the errors in the defaults of a structural schema, except in maps, which other rules cover.

    `must_be_pruned` says whether a default must not have unknown fields.
    """
    with limited(_MOST_STEPS):
        _Checks(report, must_be_pruned).walk({**schema, EMBEDDED: True}, path, None)


class _Checks:
    def __init__(self, report: Report, must_be_pruned: bool) -> None:
        self._report = report
        self._must_be_pruned = must_be_pruned
        self._left = self._most = OBJECT_LIMIT
        """What the rules for all defaults together may still cost, at least and at most."""

    def walk(self, schema: Schema, path: Path, around: Surrounding | None) -> None:
        """Check the default of a schema and those below it.

        Inside metadata, `around` is the place of the schema's value in the resource.
        """
        if schema.get(EMBEDDED):
            around = None
        if schema.get("default") is not None:
            self._check(schema["default"], schema, path.child("default"), around)
        items = schema.get("items")
        if isinstance(items, dict):
            self.walk(items, path.child("items"), around and around.index())
        properties = schema.get("properties")
        if properties:
            below, embedded = path.child("properties"), bool(schema.get(EMBEDDED))
            for name, each in properties.items():
                if is_plain(each):
                    continue
                inner = around and around.child(name)
                if embedded and name in META_FIELDS:
                    inner = Surrounding(schema, type_meta=True).child(name)
                self.walk(each, below.key(name), inner)

    def _check(self, value: Any, schema: Schema, path: Path, around: Surrounding | None) -> None:
        if self._left < 0:
            reason = "the cost limit ends the checks of defaults, but the API server takes them in any order"
            self._report.leave(rules.DEFAULT_VALUE, path, reason)
            return
        try:
            spend_on_nodes(0)  # if nothing is left, they need not be counted
            spend_on_nodes(len(_all_nodes(schema)))
            if around is not None:
                fine = self._fits_metadata(value, path, around)
            elif isinstance(value, dict | list):
                value, fine = self._structured(value, schema, path)
            else:
                fine = True
            if not fine:
                return
            findings = Validator.of_default(schema).check(value)
        except UndecidedValue as undecided:
            self._report.leave(rules.DEFAULT_VALUE, path, str(undecided))
            return
        if findings:
            self._add(openapi_violations(findings, path, self._report.quotes))
        elif has_rules(schema):
            self._check_rules(value, schema, path)

    def _check_rules(self, value: Any, schema: Schema, path: Path) -> None:
        """Evaluate the rules twice: as if the value already existed, and as if it were new."""
        walk = RuleWalk(ObjectNode(schema), root=False)
        before, without = Account(self._left, self._most), Account(self._left, self._most)
        found, left = walk.check(value, value, None, path, before)
        if not found:
            found, more = walk.check(value, None, None, path, without)
            left = [*left, *more]
        self._left = min(before.left, without.left)
        self._most = min(before.most, without.most)
        self._add(found)
        for reason in dict.fromkeys(each.reason for each in left):
            self._report.leave(rules.DEFAULT_VALUE, path, reason)

    def _structured(self, value: Any, schema: Schema, path: Path) -> tuple[Any, bool]:
        """The value as the server decodes it, and whether metadata in it is valid, so that it is checked.

        The server decodes the embedded resources in place, so it also prints them that way, even when it
        reports that the value had unknown fields before.
        """
        node = ObjectNode(schema)
        kept, _ = pruned(value, node, nulls=False, listed=False)
        is_pruned = not self._must_be_pruned or same(kept, copied(value))
        findings: FieldErrors = []
        if node.has_embedded:
            before, value = value, copied(value)
            findings = _malformed(value, node)
            if findings and not same(before, value):
                self._report.leave(rules.DEFAULT_VALUE, path, "how far the API server decodes it is chance")
            findings = findings or check_embedded(value, node)
        if not is_pruned:
            self._report.invalid(rules.DEFAULT_VALUE, path, value, "must not have unknown fields")
        self._add(structural_violations(findings, path, self._report.quotes))
        return value, not findings

    def _fits_metadata(self, value: Any, path: Path, around: Surrounding) -> bool:
        """Whether a default inside metadata makes valid metadata."""
        built, node = around.built(copied(value)), around.node
        findings = _malformed(built, node) or check_embedded(built, node)
        if findings:
            detail = f"must result in valid metadata: {_aggregate(findings)}"
            self._report.invalid(rules.DEFAULT_VALUE, path, value, detail)
        return not findings

    def _add(self, found: list[Violation]) -> None:
        self._report.violations += [replace(each, rule=rules.DEFAULT_VALUE) for each in found]


def _malformed(value: Any, node: ObjectNode) -> FieldErrors:
    """Normalize metadata in a value, in place; returns what cannot be decoded. Raises UndecidedValue."""
    findings = coerce(value, node)
    if len(findings) > 1:
        raise UndecidedValue("of several fields that cannot be decoded, the API server names any")
    for each in findings:
        if each.steps[0] == (Step.FIELD, "metadata"):
            each.detail = metadata_error(each.value)
    return findings


def _aggregate(findings: FieldErrors) -> str:
    """Errors as one text."""
    found = structural_violations(findings)
    texts = list(dict.fromkeys(f"{each.path}: {each.message}" for each in found))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def has_rules(schema: Schema) -> bool:
    """Whether a node that shapes values has a rule of x-kubernetes-validations."""
    return any(each.get(VALIDATIONS) for each in _shaping_nodes(schema))


def has_unpruned_defaults(schema: Schema) -> bool:
    """Whether a schema is structural and pruning changes one of its defaults, including those in maps."""
    if not any("default" in each for each in _all_nodes(schema)) or conversion_error(schema) is not None:
        return False
    report = Report()
    violations(schema, root("schema"), report)
    return not report.violations and _is_changed_by_pruning(schema, Surrounding(schema))


def _is_changed_by_pruning(schema: Schema, around: Surrounding) -> bool:
    default = schema.get("default")
    if default is not None:
        if around.is_root and not isinstance(default, dict):
            return False  # not an object for the server, which ignores what is below
        if not same(around.kept(copied(default)), default):
            return True
    below = [around.child(name) for name in schema.get("properties") or ()]
    parts = list((schema.get("properties") or {}).values())
    for key, inner in (("items", around.index()), ("additionalProperties", around.child("*"))):
        if isinstance(schema.get(key), dict):
            parts.append(schema[key])
            below.append(inner)
    return any(_is_changed_by_pruning(each, inner) for each, inner in zip(parts, below, strict=True))


def _all_nodes(schema: Schema) -> list[Schema]:
    found = [schema]
    for each in found:
        found.extend(subschemas(each))
    return found


_SHAPES: Final = frozenset(("properties", "items", "additionalProperties"))


def _shaping_nodes(schema: Schema) -> list[Schema]:
    """The nodes outside allOf, anyOf, oneOf and not."""
    found = [schema]
    for each in found:
        if _SHAPES.isdisjoint(each):
            continue
        found.extend((each.get("properties") or {}).values())
        for key in ("items", "additionalProperties"):
            if isinstance(each.get(key), dict):
                found.append(each[key])
    return found
