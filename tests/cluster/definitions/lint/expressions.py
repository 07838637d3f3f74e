"""Rules of x-kubernetes-validations: valid, invalid and expensive ones."""

from typing import Any

from hypothesis import strategies as st

_EXPRESSIONS = (
    "true",
    "1 + 1",
    "self",
    "self.a > 1",
    "self.b.a == 'x'",
    "has(self.a)",
    "has(self.name) && self.name.startsWith('x')",
    "self == oldSelf",
    "self.a == oldSelf.a",
    "oldSelf.hasValue() ? self == oldSelf.value() : true",
    "oldSelf.orValue(self) == self",
    "size(self) < 10",
    "self.size() < 10",
    "self.all(x, true)",
    "self.all(x, self.all(y, x == y))",
    "self.all(x, self.all(y, self.all(z, x == y && y == z)))",
    "self.exists_one(k, k == 'a')",
    "self.b.all(x, x.matches('^a+$'))",
    "self.name.matches('(')",
    "self.name.find('a') == ''",
    "self.map(x, x).size() > 0",
    "self.ports.all(p, p.name != '' && p.a > 0)",
    "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))",
    "self.labels.all(k, self.labels[k].size() > 1)",
    "self.size == '10%' || self.size == 1",
    "type(self.size) == string",
    "self.template.kind == 'Pod'",
    "self.metadata.name.size() < 10",
    "self.metadata.labels.size() < 10",
    "self.kind == 'X' && self.apiVersion != ''",
    "self.nope",
    "nope",
    "self.a +",
    "'a' < 1",
    "self.a in [1, 2, 3]",
    "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
    "quantity('x').isGreaterThan(1)",
    "url('https://a').getHost() == 'a'",
    "ip('10.0.0.1').family() == 4",
    "cidr('10.0.0.0/8').containsIP('10.0.0.1')",
    "duration('1h') > duration('1m')",
    "timestamp('2026-01-02T03:04:05Z') < timestamp('x')",
    "format.dns1123Label().validate('a').hasValue()",
    "semver('1.2.3').isLessThan(semver('2.0.0'))",
    "sets.contains([1, 2], [1])",
    "['a', 'b'].join(',') == self.name",
    "self.?a.orValue(1) == 1",
    "self[?'a'].hasValue()",
    "self.b.sum() > 1",
    "self.b.isSorted()",
    "self.b.includes('a')",
    "['a'].includes('a')",
    "[1, 'a'].size() > 0",
    "{'a': 1}['a'] == 1",
    "self.__if__ == 1",
    "dyn(self) == dyn(1)",
    "1.0 == 1",
    "b'a' == bytes('a')",
    "self.a.b.c.d",
    "cel.bind(x, self.a, x > 1)",
    "self.all(i, v, i != v)",
    "true &&\ntrue",
    '"\\u0041" == "A"',
    "self.name.replace('a', 'b').size() > 0 && self.name.split('').size() > 0",
)
_MESSAGES = (
    "'fine'", "self", "self.name", "'a' + 1", "self.b.join(',')", "string(self.a)",
    "'%s'.format([self.a])", "self.map(x, 'y').join(',')", "'oldSelf'", "oldSelf.a", "string(oldSelf)", "''",
)  # fmt: skip


@st.composite
def _rule(draw: st.DrawFn) -> Any:
    rule: dict[str, Any] = {"rule": draw(st.sampled_from(_EXPRESSIONS)), "message": "m"}
    if draw(st.integers(0, 2)) == 0:
        rule["messageExpression"] = draw(st.sampled_from(_MESSAGES))
    if draw(st.integers(0, 4)) == 0:
        rule["optionalOldSelf"] = draw(st.booleans())
    return rule


EXPRESSIONS = st.lists(_rule(), min_size=1, max_size=3)
"""A value for x-kubernetes-validations."""
