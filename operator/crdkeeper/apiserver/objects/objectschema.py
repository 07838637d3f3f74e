"""What the API server does with a custom object: prunes and defaults it, and accepts or rejects it.

The schema of a version is compiled once for many objects. The order is that of a request: decode, prune
unknown fields, drop nulls, normalize metadata, default, validate.
"""

from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final, Self

from crdkeeper.apiserver.objects import valuerules
from crdkeeper.apiserver.objects.correlation import Correlated
from crdkeeper.apiserver.objects.defaulting import fill, prune_defaults
from crdkeeper.apiserver.objects.effort import limited
from crdkeeper.apiserver.objects.listtypes import check_list_types
from crdkeeper.apiserver.objects.objectmeta import (
    Malformed,
    coerce,
    object_meta,
    unknown_fields,
    unknown_in_embedded,
)
from crdkeeper.apiserver.objects.objectmetarules import check_embedded, check_root
from crdkeeper.apiserver.objects.objectnode import ObjectNode, copied
from crdkeeper.apiserver.objects.objectrules import RuleWalk
from crdkeeper.apiserver.objects.prune import MOST_UNKNOWN, pruned, unpruned
from crdkeeper.apiserver.objects.surrounding import Surrounding
from crdkeeper.apiserver.objects.validate import Validator
from crdkeeper.apiserver.schema.fieldpath import Path
from crdkeeper.apiserver.schema.finding import (
    INVALID,
    MOST_FINDINGS,
    FieldError,
    FieldErrors,
    Step,
    UndecidedValue,
    below,
    openapi_violations,
    structural_violations,
)
from crdkeeper.apiserver.schema.props import Schema
from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.apiserver.schema.violation import OMITTED, Unchecked, Violation

_WHOLE = Path("<nil>", ())
_MOST_STEPS: Final = 200_000_000
"""For the schema's work on one object: at most two seconds, even if it is slow on purpose."""
_TOO_DEEP = "the object nests too deep"
_GENERATED = "the API server makes up the end of the name, and the schema says what names may be"


class CannotCompile(Exception):
    """A schema that cannot be evaluated here; the text says why."""


@dataclass(slots=True)
class Admitted:
    """The result for an object."""

    object: Any
    """The object as it would be stored; None if it cannot be read."""
    violations: list[Violation] = field(default_factory=list)
    """Why it is rejected, as in `status.details.causes`, where the field "<nil>" means none."""
    unchecked: list[Unchecked] = field(default_factory=list)
    """Checks left to the API server, which may reject the object for more than `violations`."""
    unknown: list[str] = field(default_factory=list)
    """Unknown fields that were dropped, as the server's warnings name them; only `admit` lists them."""

    @property
    def accepted(self) -> bool | None:
        """Whether the server accepts the object; None if only it can tell."""
        if self.violations:
            return False
        return None if self.unchecked else True


class ObjectSchema:
    """The schema of one version of a custom resource."""

    def __init__(self, schema: Schema, *, status: bool = False, prunes: bool = True) -> None:
        """`status` says whether status is a subresource. Raises CannotCompile. See `of`."""
        try:
            # At the root, pruning knows apiVersion, kind and metadata, but they are not coerced or checked
            # like those of embedded resources.
            self._shape = ObjectNode(schema, embedded=True)
            self._node = ObjectNode(schema)
            prune_defaults(self._node, Surrounding(schema, self._shape))
            self._validator = Validator(schema)
            self._rules = RuleWalk(self._node)
        except RecursionError:
            raise CannotCompile("the schema nests too deep") from None
        except UndecidedValue as undecided:
            raise CannotCompile(f"in a default: {undecided}") from None
        self._status = status
        self._prunes = prunes
        metadata = self._node.properties.get("metadata")
        self._limits_names = any(map(_may_see_name, self._node.rules)) or (
            metadata is not None and "name" in metadata.properties
        )

    @classmethod
    def of(cls, schema: Schema, *, status: bool = False, prunes: bool = True) -> Self:
        """Compile a structural schema, decoded by `props.SCHEMA`. Raises CannotCompile.

        With `status`, this is the schema of the main endpoint, which keeps the status of the old object.
        Without `prunes`, unknown fields and all nulls stay, as with spec.preserveUnknownFields of the CRD.
        """
        return cls(schema, status=status, prunes=prunes)

    @property
    def node(self) -> ObjectNode:
        """The schema as a tree, with its effective defaults."""
        return self._node

    def admit(self, obj: Any, old: Any = None) -> Admitted:
        """Admit an object that is created, or that replaces `old`; neither is changed.

        Does not compare apiVersion and kind with those of the resource, nor check the namespace, a
        resourceVersion, which a new object must not have, or other metadata that an update must keep: only
        the request contains them.
        """
        try:
            with limited(_MOST_STEPS):
                return self._admit(obj, old)
        except RecursionError:
            return Admitted(None, [], [Unchecked(valuerules.SCHEMA, _WHOLE, _TOO_DEEP)])

    def create(self, obj: Any, *, whole: bool = False) -> Admitted:
        """Admit a new object, as it is stored; `admit` also reads it again.

        `whole`: as if status were not a subresource.
        """
        return self._to_storage(obj, None, whole=whole)

    def stored(self, obj: Any) -> Admitted:
        """Read an object that is stored in this version: pruned and defaulted, never validated.

        Violations are what makes it unreadable. At another version, that version's `converted` applies.
        """
        return self._as_read(obj, lenient=True, defaults=True)

    def converted(self, obj: Any) -> Admitted:
        """An object that was converted to this version: pruned, but not defaulted.

        So it is read at a version in which it is not stored (schemaCoercingConverter in
        k8s.io/apiextensions-apiserver), and so it is stored if this is the storage version. Violations are
        what makes it unreadable.
        """
        return self._as_read(obj, lenient=False, defaults=False)

    def rewrite(self, current: Any) -> Admitted:
        """Admit an update that sends the object exactly as it is read, as it is stored."""
        return self._to_storage(current, current)

    def _to_storage(self, obj: Any, old: Any, *, whole: bool = False) -> Admitted:
        try:
            with limited(_MOST_STEPS):
                return self._admit(obj, old, raw=True, whole=whole)
        except RecursionError:
            return Admitted(None, [], [Unchecked(valuerules.SCHEMA, _WHOLE, _TOO_DEEP)])

    def _as_read(self, obj: Any, *, lenient: bool, defaults: bool) -> Admitted:
        try:
            with limited(_MOST_STEPS):
                value, findings, _ = self._read(obj, lenient=lenient, defaults=defaults)
        except UndecidedValue as undecided:
            return Admitted(None, [], [_left(valuerules.DECODE, undecided)])
        except RecursionError:
            return Admitted(None, [], [Unchecked(valuerules.DECODE, _WHOLE, _TOO_DEEP)])
        return Admitted(None, structural_violations(findings)) if findings else Admitted(value)

    def _admit(self, obj: Any, old: Any, *, raw: bool = False, whole: bool = False) -> Admitted:
        """`raw`: `old` was read from storage and remains as it is, and the result is not read again."""
        admitted = Admitted(None)
        try:
            value, findings, admitted.unknown = self._read(obj, lenient=False, listed=not raw)
            before = copied(old) if raw or old is None else self._read(old, lenient=True)[0]
        except UndecidedValue as undecided:
            admitted.unchecked.append(_left(valuerules.DECODE, undecided))
            return admitted
        if findings:
            admitted.violations += structural_violations(findings)
            return admitted
        if before is None:
            for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
                value.get("metadata", {}).pop(key, None)
        if self._status and not whole:
            _keep_status(value, before)
        self._check(value, before, admitted)
        # The stored object is read again, which adds the defaults of a status that was not taken from the
        # request.
        try:
            if not raw:
                fill(value, self._node)
            admitted.object = value
        except UndecidedValue as undecided:
            admitted.unchecked.append(_left(valuerules.DECODE, undecided))
        return admitted

    def _read(
        self, obj: Any, *, lenient: bool, defaults: bool = True, listed: bool = False
    ) -> tuple[Any, FieldErrors, list[str]]:
        """The object as the server decodes it, what prevents that, and, if `listed`, the unknown fields.

        With `lenient`, as objects are read from storage. Raises UndecidedValue.
        """
        if not isinstance(obj, dict):
            return None, [FieldError(valuerules.DECODE, INVALID, OMITTED, "must be an object")], []
        found: list[FieldError] = []
        for key in ("apiVersion", "kind"):
            if key in obj and not isinstance(obj[key], str):
                bad = FieldError(valuerules.DECODE, INVALID, obj[key], "must be a string")
                found += below(Step.FIELD, key, [bad])
        metadata: dict[str, Any] | None = None
        try:
            metadata = object_meta(obj["metadata"]) if "metadata" in obj else None
        except Malformed as error:
            bad = FieldError(valuerules.DECODE, INVALID, OMITTED, str(error))
            found += below(Step.FIELD, "metadata", [bad])
        if found:
            return None, found, []
        unknown: list[str] = []
        if self._prunes:
            value, unknown = pruned(obj, self._shape, listed=listed)
        else:
            value = unpruned(obj)
        if listed:
            named = unknown_fields(obj.get("metadata"), "metadata")
            more = chain(named, unknown_in_embedded(value, self._node))
            unknown = sorted([*unknown, *islice(more, MOST_UNKNOWN - len(unknown))])
        malformed = coerce(value, self._node, lenient=lenient)
        for key in ("apiVersion", "kind"):
            if key in obj:
                value[key] = obj[key]
        if metadata is not None:
            value["metadata"] = metadata
        if defaults:
            fill(value, self._node)
        return value, malformed, unknown

    def _check(self, value: Any, old: Any, admitted: Admitted) -> None:
        correlated = None if old is None else Correlated(value, old, self._node)
        metadata = value.get("metadata", {})
        root = check_root(metadata, create=old is None)
        admitted.violations += structural_violations(root)
        blocked = any(each.blocking for each in root)
        undecided = old is None and self._limits_names and _gets_name(metadata)
        if undecided:
            admitted.unchecked.append(Unchecked(valuerules.SCHEMA, _WHOLE, _GENERATED))
        try:
            openapi = self._validator.check_update(value, correlated)
            admitted.violations += openapi_violations(openapi)
            blocked = blocked or any(each.blocking for each in openapi)
            undecided = undecided or len(openapi) >= MOST_FINDINGS
        except UndecidedValue as error:
            admitted.unchecked.append(_left(valuerules.SCHEMA, error))
            undecided = True
        try:
            embedded = check_embedded(value, self._node)
            admitted.violations += structural_violations(embedded)
            blocked = blocked or any(each.blocking for each in embedded)
            undecided = undecided or len(embedded) >= MOST_FINDINGS
        except UndecidedValue as error:
            admitted.unchecked.append(_left(valuerules.METADATA, error))
            undecided = True
        if old is None or not check_list_types(old, self._node):
            admitted.violations += structural_violations(check_list_types(value, self._node))
        if not self._rules:
            return
        if blocked:
            admitted.violations.append(_NOT_EVALUATED)
        elif undecided:
            reason = "whether rules are evaluated depends on what else is wrong"
            admitted.unchecked.append(Unchecked(valuerules.VALIDATION, _WHOLE, reason))
        else:
            violations, unchecked = self._rules.check(value, old, correlated)
            admitted.violations += violations
            admitted.unchecked += unchecked


_NOT_EVALUATED = Violation(
    valuerules.VALIDATION,
    _WHOLE,
    INVALID,
    "null",
    "some validation rules were not checked because the object was invalid; correct the existing errors to "
    "complete validation",
)


def _keep_status(value: dict[str, Any], old: Any) -> None:
    if old is not None and "status" in old:
        value["status"] = old["status"]
    else:
        value.pop("status", None)


def _may_see_name(rule: Schema) -> bool:
    """Whether a rule at the root may depend on the name; through dyn it can see all fields at once."""
    text = f"{rule.get('rule')} {rule.get('messageExpression')}"
    return "metadata" in text or "dyn" in text


def _gets_name(metadata: dict[str, Any]) -> bool:
    return bool(metadata.get("generateName")) and not metadata.get("name")


def _left(rule: Rule, undecided: UndecidedValue) -> Unchecked:
    return Unchecked(rule, _WHOLE, str(undecided))
