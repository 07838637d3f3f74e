"""An incomplete violation: found at the value that causes it, before the place of that value is known.

Each level of a value adds its step to the findings from below. So a valid object, the common case, needs no
paths.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from crdkeeper.apiserver.golang.text import quote
from crdkeeper.apiserver.schema.fieldpath import Path, joined
from crdkeeper.apiserver.schema.quotes import Quotes
from crdkeeper.apiserver.schema.rules import Rule
from crdkeeper.apiserver.schema.violation import OMITTED, Violation

INVALID: Final = "Invalid value"
REQUIRED: Final = "Required value"
NOT_SUPPORTED: Final = "Unsupported value"
TOO_LONG: Final = "Too long"
TOO_MANY: Final = "Too many"
DUPLICATE: Final = "Duplicate value"
FORBIDDEN: Final = "Forbidden"

_BLOCKING = frozenset((REQUIRED, NOT_SUPPORTED, TOO_LONG, TOO_MANY))


class UndecidedValue(Exception):
    """Only the API server can tell whether a value is valid."""


class Step(Enum):
    """How a finding's path continues one level down."""

    FIELD = "a property"
    ENTRY = "a property of a map, which the OpenAPI validator of the server always names with a leading dot"
    KEY = "an entry of a map, in brackets"
    INDEX = "an item of a list"


class Naming(Enum):
    """Where the message contains the field's name."""

    NONE = "nowhere"
    BEFORE = "at the beginning"
    QUOTED = "at the beginning, in quotes"
    AFTER = "at the end"
    BETWEEN = "where the detail has a NUL"


class FieldError:
    """One error of a value, with the steps that lead to it, innermost first."""

    __slots__ = ("blocking", "detail", "kind", "naming", "nowhere", "rule", "steps", "value")

    def __init__(
        self,
        rule: Rule,
        kind: str,
        value: Any,
        detail: str,
        naming: Naming = Naming.NONE,
        *,
        wrong_type: bool = False,
        nowhere: bool = False,
    ) -> None:
        """`nowhere` marks an error for which the server names the field only in the message."""
        self.rule = rule
        self.kind = kind
        self.value = value
        self.detail = detail
        self.naming = naming
        self.nowhere = nowhere
        self.steps: list[tuple[Step, str | int]] = []
        self.blocking = wrong_type or kind in _BLOCKING
        """Whether this error prevents the server from evaluating x-kubernetes-validations."""


FieldErrors = Sequence[FieldError]
NO_FINDINGS: Final[tuple[FieldError, ...]] = ()
MOST_FINDINGS: Final = 10_000
"""Findings of one value; nobody reads more. Where so many are found, there may be others."""


def below(step: Step, name: str | int, findings: FieldErrors) -> FieldErrors:
    """The findings of a part, as findings of the whole."""
    for each in findings:
        each.steps.append((step, name))
    return findings


def dotted(finding: FieldError) -> str:
    """The field's name in kube-openapi's format; an extremely long one is shortened in the middle."""
    texts: list[str] = []
    for step, name in reversed(finding.steps):
        if step is Step.INDEX:
            texts.append(f"[{name}]")
        elif step is Step.FIELD and not any(texts):
            texts.append(str(name))
        else:
            texts.append(f".{name}")
    return joined(texts)


def message(finding: FieldError) -> str:
    """The detail with the field's name in its place."""
    naming = finding.naming
    if naming is Naming.NONE:
        return finding.detail
    name = dotted(finding)
    if naming is Naming.BEFORE:
        return name + finding.detail
    if naming is Naming.QUOTED:
        return quote(name) + finding.detail
    return finding.detail + name if naming is Naming.AFTER else finding.detail.replace("\0", name, 1)


_NOWHERE = "<nil>"
_BARE = frozenset((REQUIRED, FORBIDDEN, TOO_LONG))
"""Errors that show no value."""


def _violation(finding: FieldError, path: Path, detail: str, quotes: Quotes) -> Violation:
    bare = finding.kind in _BARE or finding.value is OMITTED
    shown = None if bare else quotes.value(finding.value)
    return Violation(finding.rule, path, finding.kind, shown, detail)


def openapi_violations(
    findings: FieldErrors, base: Path | None = None, quotes: Quotes | None = None
) -> list[Violation]:
    """Findings of the OpenAPI validator below `base` (None: of a whole object), without repeated messages."""
    found: dict[str, Violation] = {}
    quotes = quotes or Quotes()
    for each in findings[:MOST_FINDINGS]:
        each.detail = quotes.text(each.detail)
        name, detail = dotted(each), message(each)
        said = detail if each.naming is not Naming.NONE else f"{name}\0{each.kind}\0{detail}"
        if said not in found:
            found[said] = _violation(each, _openapi_path(each, name, base), detail, quotes)
    return list(found.values())


def _openapi_path(finding: FieldError, name: str, base: Path | None) -> Path:
    steps = tuple(step for _, step in reversed(finding.steps))
    if name and not finding.nowhere:
        return (base or Path("", ())).child(name.removeprefix("."), *steps)
    return Path(_NOWHERE, steps) if base is None else Path(str(base), (*base.steps, *steps))


def structural_violations(
    findings: FieldErrors, base: Path | None = None, quotes: Quotes | None = None
) -> list[Violation]:
    """Findings of the checks along the structural schema below `base` (None: of a whole object)."""
    quotes = quotes or Quotes()
    return [
        _violation(each, structural_path(each, base), message(each), quotes)
        for each in findings[:MOST_FINDINGS]
    ]


def structural_path(finding: FieldError, base: Path | None) -> Path:
    """The path of a finding as printed by field.Path."""
    if base is None and not finding.steps:
        return Path(_NOWHERE, ())
    path = base or Path("", ())
    for step, name in reversed(finding.steps):
        path = _ADD[step](path, name)
    return path


def _field(path: Path, name: Any) -> Path:
    return path.child(name)


def _key(path: Path, name: Any) -> Path:
    return path.key(name)


def _index(path: Path, name: Any) -> Path:
    return path.index(name)


_ADD: dict[Step, Callable[[Path, Any], Path]] = {
    Step.FIELD: _field,
    Step.ENTRY: _field,
    Step.KEY: _key,
    Step.INDEX: _index,
}
