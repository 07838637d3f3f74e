# ruff: noqa: E501
"""Lists, maps, macros, optionals, quantities, versions and named formats."""

from itertools import product

_LISTS = (
    "[1, 2, 3]", "[3, 1, 2]", "[2, 2]", "[1u, 3u]", "[1.5, -0.5]", "['b', 'a']", "[true, false]", "[b'b', b'a']", "[duration('2s'), duration('1s')]",
    "[timestamp(2), timestamp(1)]", "[dyn(1), dyn(2.5)]", "[dyn(1), dyn('a')]", "[[1], [2]]", "[dyn(null)]", "[1.0, double('NaN'), 0.5]", "[{'a': 1}]",
    "[9223372036854775807, 1]",
)  # fmt: skip
LISTS = [
    *(f"dyn({values}).{name}()" for values in _LISTS for name in ("isSorted", "sum", "min", "max", "sort", "distinct", "reverse", "flatten", "first", "last")),
    *(f"[].{name}()" for name in ("isSorted", "min", "max", "reverse", "distinct", "flatten", "sort", "first", "last")),
    "[1.0].filter(x, x > 2.0).sum()", "[1].filter(x, x > 2).sum() == 0", "type([1u].filter(x, x > 2u).sum()) == uint", "[duration('1s')].filter(x, false).sum()",
    *(f"[1, 2, 3, 2].{name}({value})" for name in ("indexOf", "lastIndexOf") for value in ("2", "9", "dyn(2.0)", "dyn('a')", "dyn(null)")),
    *(f"[1, 2, 3].slice({start}, {end})" for start, end in ((0, 3), (1, 2), (2, 1), (-1, 1), (0, 4), (3, 3), (1, -1))),
    *(f"[[1, [2, [3]]], [dyn(4)]].flatten({depth})" for depth in (-1, 0, 1, 2, 9)),
    "[[1], [], [2, 3]].flatten()", "dyn(1).flatten()", "dyn(1).flatten(2)",
    *(f"dyn({value}).flatten({depth})" for depth in ("", "2", "dyn('a')") for value in (
        "{1: 2}", "{}", "optional.none()", "optional.of(1)", "null", "int", "ip('::1')", "quantity('1')", "duration('1s')", "[[1]]",
    )),
    *(f"[].flatten({depth})" for depth in (
        "dyn(1u)", "dyn(1.0)", "dyn('a')", "dyn(null)", "dyn([1])", "dyn({})", "dyn(int)", "dyn(optional.of(1))", "dyn(ip('::1'))", "dyn(quantity('1'))",
        "dyn(duration('1s'))", "dyn(b'a')", "dyn(true)", "1 / 0", "int('a')", "dyn(url('https://a/'))", "dyn(timestamp(2))", "dyn(semver('1.2.3'))",
    )),
    "[].slice(1, 1).flatten(dyn('a'))", "[].slice(1, 1).flatten(1 / 0)", "true || [].flatten(dyn('a')).size() == 1", "[].flatten(dyn('a')).size() == 1 || true", "[1].all(x, [].flatten(dyn(x)).size() == 0 || true)", "[1].all(x, [].flatten(dyn('x')).size() == 0 || true)",
    *(f"lists.range({count})" for count in (-1, 0, 1, 5)),
    "[1, 1.0, 1u, '1'].map(x, dyn(x)).distinct()", "[[1], [1.0]].distinct()", "[null, null].distinct()",
    *(f"sets.{name}({one}, {two})" for name in ("contains", "equivalent", "intersects") for one, two in (
        ("[1, 2]", "[2]"), ("[1]", "[1, 2]"), ("[]", "[]"), ("[1]", "[]"), ("[1, 1]", "[1]"), ("[1]", "[1.0]"), ("['a']", "['b']"), ("[[1]]", "[[1]]"),
        ("[1u, 2u]", "[2, 1]"), ("[ip('::1')]", "[ip('::1')]"),
    )),
    "[3, 1, 2].sortBy(x, -x)", "['aa', 'b', 'ccc'].sortBy(s, s.size())", "[1, 2].sortBy(x, 1/0)", "[1, 2].sortBy(x, [x])", "[1, 2].sortBy(x, x == 1 ? dyn('a') : dyn(1))",
    "dyn(1).sortBy(x, x)", "[].sortBy(x, x)", "[{'n': 2}, {'n': 1}].sortBy(x, x.n)", "['b', 'a', 'b'].sortBy(x, 1)",
    *(f"dyn({values}).{name}(dyn({arg}))" for values, name, arg in (("1", "slice", "1"), ("'abc'", "indexOf", "1"), ("[1]", "indexOf", "'a'"), ("1", "join", "','"))),
]  # fmt: skip

_RANGES = ("[1, 2, 3]", "[]", "{'a': 1}", "{}", "dyn(1)", "dyn('ab')", "dyn(null)")
MACROS = [
    *(f"{values}.{name}(x, {body})" for values in _RANGES for name in ("all", "exists", "exists_one") for body in ("true", "false", "1/0 > 0", "dyn(1)", "dyn(x) == 2")),
    *(f"{values}.{name}(k, v, {body})" for values in _RANGES for name in ("all", "exists", "existsOne", "exists_one") for body in ("true", "dyn(v) == 1", "1/0 > 0")),
    *(f"{values}.map(x, {body})" for values in _RANGES for body in ("x", "1/0", "[x]")),
    *(f"{values}.filter(x, {body})" for values in _RANGES for body in ("true", "dyn(x) == 2", "1/0 > 0", "dyn(1)")),
    *(f"[1, 2, 3].map(x, {predicate}, {body})" for predicate in ("x > 1", "10 / (x - 2) > 0", "dyn(x)") for body in ("x * 2", "1 / (x - 3)", "1 % (x - 1)")),
    *(f"[1, 2, 3].{name}(x, {body})" for name in ("all", "exists", "exists_one") for body in ("10 / (x - 2) > 0", "1 % (x - 1) == 0", "x > 2 || 1 / 0 > 0", "dyn(x == 1 ? dyn(1) : dyn(true))", "10 / (x - 1) > 1 && 1 % (x - 2) == 0")),
    "[1, 2].all(x, [3, 4].exists(y, x + y == 5))", "[1, 2].map(x, [1, 2].map(x, x * 10))", "[[1, 2], [3]].map(l, l.map(x, x + l.size()))",
    "[1, 2].exists(x, x == 2)",
    *(f"{values}.transformList(k, v, {body})" for values in ("[5, 6]", "{'a': 1}", "{}") for body in ("k", "v", "[dyn(k), dyn(v)]", "1/0")),
    *(f"{values}.transformMap(k, v, {body})" for values in ("[5, 6]", "{'a': 1}", "{}") for body in ("v", "dyn(k)", "1/0")),
    "[5, 6, 7].transformList(i, v, i > 0, v * 2)", "[5, 6, 7].transformMap(i, v, i > 0, v * 2)", "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, k)",
    "[5, 6].transformMapEntry(i, v, {v: i})", "[5, 5].transformMapEntry(i, v, {v: i})", "['a', 'a'].transformMapEntry(i, v, {v: i})", "[5].transformMapEntry(i, v, dyn(1))",
    "[5, 6].transformMapEntry(i, v, i == 1, {v: i})", "{'a': 'x'}.transformMapEntry(k, v, {v: k})", "{1: 'a', 1u: 'b'}.transformMap(k, v, v)",
    "[1, 2, 3].transformMapEntry(i, v, {})", "[true, true].transformMapEntry(i, v, {v: i})", "[1.5, 1.5].transformMapEntry(i, v, {v: i})",
]  # fmt: skip

OPTIONALS = [
    *(f"optional.{name}({value})" for name in ("of", "ofNonZeroValue") for value in (
        "0", "1", "0u", "0.0", "''", "'a'", "b''", "false", "null", "[]", "[0]", "{}", "{'a': 0}", "duration('0')", "timestamp(0)", "timestamp('0001-01-01T00:00:00Z')",
        "double('NaN')", "optional.none()", "[] + []",
    )),
    *(f"{form}" for value in ("optional.of(1)", "optional.none()", "optional.of(dyn('a'))") for form in (
        f"{value}.hasValue()", f"{value}.value()", f"{value}.or(optional.of(dyn(2)))", f"{value}.orValue(dyn(3))", f"{value}.optMap(x, [x])",
        f"{value}.optFlatMap(x, optional.of([x]))", f"{value}.optFlatMap(x, optional.none())", f"{value}.optMap(x, 1/0)", f"[?{value}]", f"{{?'a': {value}}}",
    )),
    "optional.none().or(optional.none())", "optional.none().orValue(1/0)", "optional.of(1).orValue(1/0)", "optional.of(1).or(optional.of(1/0))",
    *(f"{{'a': {{'b': 1}}}}.{chain}" for chain in ("?a", "?x", "?a.b", "?a.x", "?x.b", "a.?b", "a.?x", "?a.?b", "?a.?x", "x.?b")),
    *(f"[1, 2]{chain}" for chain in ("[?0]", "[?5]", "[?-1]", "[?dyn(1.0)]", "[?dyn('a')]")),
    "{'a': [1]}.?a[0]", "{'a': [1]}.?a[1]", "{'a': [1]}.?a[?0]", "{'a': [1]}[?'a'][0]", "{1: 2}[?1]", "{1: 2}[?dyn(1.0)]", "{1: 2}[?3]",
    "has({'a': {'b': 1}}.?a.b)", "has({'a': {'b': 1}}.?x.b)", "has({'a': {'b': 1}}.?a.c)", "dyn(1).?a", "dyn('a')[?0]",
    "{'a': optional.of({'b': 1})}.a.b", "optional.of({'b': 1}).b", "optional.of({'b': 1}).c", "optional.of([5])[0]", "optional.of([5])[1]",
    "[?optional.of(1), 2, ?optional.none()]", "{?'a': optional.of(1), 'b': 2, ?'c': optional.none()}", "{'a': 1, ?'a': optional.none()}", "[?dyn(1)]",
    "optional.unwrap([optional.of(1), optional.none()])", "[optional.of(1), optional.none()].unwrapOpt()", "[optional.of(dyn(1)), dyn(2)].unwrapOpt()",
    "dyn(1).hasValue()", "dyn(1).value()", "dyn(1).orValue(2)", "dyn(1).or(optional.of(dyn(1)))", "dyn(1).optMap(x, x)",
    "optional.of(1) == optional.of(1.0)", "optional.of(1) == optional.none()", "optional.none() == optional.none()", "dyn(optional.of(1)) == dyn(1)",
    "optional.of(null) == optional.of(null)", "[1, 2].first().value() + [1, 2].last().value()",
]  # fmt: skip

_QUANTITIES = (
    "'0'", "'1'", "'-1'", "'1.5'", "'100m'", "'1k'", "'1Ki'", "'1.5Gi'", "'0.5Mi'", "'1E'", "'1Ei'", "'10Ei'", "'1e3'", "'1E3'", "'1e-3'", "'12e+2'", "'1n'",
    "'0.1n'", "'-0.1n'", "'1u'", "'9223372036854775807'", "'9223372036854775808'", "'99999999999999999999'", "'1000000000000000000000m'", "'0.000000001'",
    "'0.0000000001'", "'+5'", "'.5'", "'5.'", "'+'", "'-'", "'.'", "'0x1'", "'007'", "'1.10'", "'1000000000000000000'", "'1.5Ki'", "'1.0000001'", "'3Pi'", "'1T'",
    "'123456789012345678k'", "'1.000m'", "'-9223372036854775808'", "'0Ki'", "'1e18'", "'1e19'",
)  # fmt: skip
_NO_QUANTITIES = (
    "''",
    "' 1'",
    "'1 '",
    "'a'",
    "'1kk'",
    "'1ki'",
    "'1e'",
    "'1e3e'",
    "'1.2.3'",
    "'--1'",
    "'1K'",
    "'1Mi1'",
    "'e3'",
    "'1m5'",
    "'1e99999999999999999999'",
    "'\u0661'",
    "'Ki'",
)
QUANTITIES = [
    *(f"isQuantity({text})" for text in _QUANTITIES + _NO_QUANTITIES),
    *(f"quantity({text}).{name}()" for text in _QUANTITIES for name in ("asInteger", "isInteger", "asApproximateFloat")),
    *(f"sign(quantity({text}))" for text in _QUANTITIES),
    *(f"quantity({text}).asInteger()" for text in _NO_QUANTITIES),
    *(f"quantity({one}).compareTo(quantity({two}))" for one, two in product(_QUANTITIES[::4], _QUANTITIES[1::5])),
    *(f"quantity({one}).{name}(quantity({two})).{result}" for one, two, name, result in product(_QUANTITIES[::7], _QUANTITIES[2::7], ("add", "sub"), ("asApproximateFloat()", "isInteger()"))),
    *(f"quantity({one}).{name}({two}).asApproximateFloat()" for one in _QUANTITIES[::5] for name in ("add", "sub") for two in (0, 5, -9223372036854775807)),
    *(f"quantity({one}).{name}(quantity({two}))" for one, two in (("'1Ki'", "'1k'"), ("'1'", "'1'")) for name in ("isGreaterThan", "isLessThan")),
    "quantity('1').add(dyn('a'))", "dyn(1).add(1)", "quantity('1000m') == quantity('1')", "quantity('1').compareTo(dyn(semver('1.0.0')))",
]  # fmt: skip

_VERSIONS = (
    "'1.2.3'", "'0.0.0'", "'1.2.3-alpha'", "'1.2.3-alpha.1'", "'1.2.3-alpha.beta'", "'1.2.3-1'", "'1.2.3+build'", "'1.2.3-a+b.c'", "'10.2.3'",
    "'18446744073709551615.0.0'", "'1.2.3--'", "'1.2.3-2'", "'1.2.3-10'",
)  # fmt: skip
_NO_VERSIONS = (
    "''", "'1'", "'1.2'", "'v1.2.3'", "'01.2.3'", "'1.02.3'", "'1.2.03'", "'1.2.x'", "'a.2.3'", "'1.b.3'", "'1.2.3-'", "'1.2.3-01'", "'1.2.3-\u00e9'", "'1.2.3+'",
    "'1.2.3+a..b'", "'1.2.3+\u00e9'", "'18446744073709551616.0.0'", "'1..3'", "'.2.3'", "'1.2.'", "' 1.2.3'", "'1.2.3.4'", "'v1'", "'v01.02'", "'1.2-alpha'", "'v'", "'vv1.2.3'",
    "'1.2.00-a'", "'1.2.3-a..b'",
)  # fmt: skip
VERSIONS = [
    *(f"isSemver({text})" for text in _VERSIONS + _NO_VERSIONS),
    *(f"isSemver({text}, true)" for text in _VERSIONS + _NO_VERSIONS),
    *(f"semver({text}).{name}()" for text in _VERSIONS for name in ("major", "minor", "patch")),
    *(f"semver({text}).major()" for text in _NO_VERSIONS),
    *(f"semver({text}, true).patch()" for text in _NO_VERSIONS),
    *(f"semver({one}).compareTo(semver({two}))" for one, two in product(_VERSIONS, _VERSIONS[::2])),
    "semver('1.2.3') == semver('1.2.3+x')", "semver('1.2.3').isLessThan(semver('1.2.4'))", "semver('1.2.3').isGreaterThan(semver('1.2.4'))",
]  # fmt: skip

_NAMES = (
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix", "labelValue", "uri",
    "uuid", "byte", "date", "datetime",
)  # fmt: skip
_TEXTS = (
    "'abc'", "''", "'A'", "'a-'", "'-a'", "'a.b'", "'1a'", "'a/b'", "'/b'", "'a/'", "'a/b/c'", "'A.b/c'", "'http://x/'", "'123e4567-e89b-12d3-a456-426614174000'",
    "'123E4567E89B12D3A456426614174000'", "'aGk='", "'aGk'", "'2024-02-29'", "'2023-02-29'", "'2024-01-01T00:00:00Z'", "'2024-01-01t00:00:00z'", "'2024-01-01T25:00:00Z'",
    "'\u00e9-'", "'-'", "'a--'", "'x" + "a" * 63 + "'", "'" + "a." * 127 + "a'",
)  # fmt: skip
NAMES = [
    *(f"format.{name}().validate({text})" for name in _NAMES for text in _TEXTS),
    *(f"format.named('{name}').hasValue()" for name in ("dns1123Label", "uri", "DNS1123Label", "x", "")),
    "format.named('uuid').value().validate('x')", "format.uuid() == format.named('uuid').value()", "format.uuid() == format.byte()", "format.date().validate(dyn(1))",
]  # fmt: skip
