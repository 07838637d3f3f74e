"""Rules of x-kubernetes-validations by the type of their value: valid, violated and failing ones."""

import copy
from typing import Any

from hypothesis import strategies as st

Json = Any

_ANY = (
    {"rule": "self == oldSelf", "message": "is immutable"},
    {"rule": "self == oldSelf", "reason": "FieldValueForbidden"},
    {"rule": "oldSelf.hasValue() || true", "optionalOldSelf": True},
    {"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": True, "message": " kept "},
    {"rule": "false", "message": "never"},
    {"rule": "false"},
    {"rule": "1 / 0 == 1"},
)
_BY_KIND: dict[str, tuple[Json, ...]] = {
    "string": (
        {"rule": "self.size() < 3"},
        {"rule": "self.startsWith('a')", "messageExpression": "'not ' + self"},
        {"rule": "self.matches('^[a-z]+$')", "reason": "FieldValueInvalid", "message": "letters only"},
        {
            "rule": "self.size() >= oldSelf.size()",
            "messageExpression": "self + ' is shorter than ' + oldSelf",
        },
        {"rule": "int(self) > 0"},
        {"rule": "self != 'abc'", "reason": "FieldValueDuplicate"},
        {"rule": "self.lowerAscii() == self", "messageExpression": "self.size() > 2 ? '' : self.charAt(5)"},
    ),
    "integer": (
        {"rule": "self > 1", "message": "more"},
        {"rule": "self >= oldSelf", "messageExpression": "'from %d to %d'.format([oldSelf, self])"},
        {"rule": "10 / self > 1"},
        {"rule": "self % 2 == 0", "reason": "FieldValueRequired"},
        {"rule": "oldSelf.optMap(o, o <= self).orValue(self < 5)", "optionalOldSelf": True},
    ),
    "number": ({"rule": "self > 1.0"}, {"rule": "self >= oldSelf"}, {"rule": "self < 2"}),
    "boolean": ({"rule": "self"}, {"rule": "self || !oldSelf", "message": "cannot be unset"}),
    "int-or-string": (
        {"rule": "type(self) == int ? self > 1 : self != ''"},
        {"rule": "self > 0"},
        {"rule": "string(self).endsWith('%')"},
    ),
    "array": (
        {"rule": "self.size() <= 2", "message": "too many"},
        {"rule": "self.size() >= oldSelf.size()"},
        {"rule": "self.isSorted()"},
        {"rule": "self[0] == self[1]"},
        {"rule": "self == self.distinct()"},
    ),
    "map": (
        {"rule": "self.all(k, k != 'a')"},
        {"rule": "self['b'] == self['c']"},
        {"rule": "self.size() < 2", "messageExpression": "'has ' + string(self.size())"},
        {"rule": "oldSelf.all(k, k in self)", "message": "keys stay"},
    ),
    "embedded": (
        {"rule": "self.kind == 'Pod'"},
        {"rule": "self.metadata.name.startsWith('x')", "message": "names begin with x"},
        {"rule": "self.apiVersion == oldSelf.apiVersion"},
    ),
}
_OF_FIELD = (
    {"rule": "has(self.{})"},
    {"rule": "!has(self.{0}) || self.{0} == oldSelf.{0}", "fieldPath": ".{}", "message": "{} stays"},
    {"rule": "self.{0} == self.{0}", "fieldPath": "['{}']"},
    {"rule": "has(self.{0}) == has(oldSelf.{0})", "reason": "FieldValueForbidden", "fieldPath": ".{}"},
    {"rule": "!has(self.{})", "fieldPath": ".{}", "reason": "FieldValueDuplicate"},
)


@st.composite
def rules(draw: st.DrawFn, kind: str, schema: Json) -> list[Json]:
    """One or two rules for a schema of this kind."""
    choices = [*_BY_KIND.get(kind, ()), *_BY_KIND.get(kind, ()), *_ANY]
    for name in sorted({"a", "b", "c", "name"} & (schema.get("properties") or {}).keys()):
        choices += [{key: _filled(each, name) for key, each in rule.items()} for rule in _OF_FIELD]
    return [copy.deepcopy(draw(st.sampled_from(choices))) for _ in range(draw(st.sampled_from((1, 1, 2))))]


def _filled(text: str, name: str) -> str:
    return text.format(name)
