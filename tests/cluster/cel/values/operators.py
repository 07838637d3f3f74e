# ruff: noqa: E501
"""Operators, conversions and equality, over pools of values of all types."""

import random
from itertools import product

INTS = (
    "0",
    "1",
    "-1",
    "7",
    "-7",
    "2147483648",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
)
UINTS = ("0u", "1u", "7u", "9223372036854775808u", "18446744073709551615u")
DOUBLES = (
    "0.0",
    "-0.0",
    "1.0",
    "-1.5",
    "1e-7",
    "123456.0",
    "1234567.5",
    "9007199254740992.0",
    "9223372036854775807.0",
    "18446744073709551615.0",
    "1.7976931348623157e308",
    "5e-324",
    "double('NaN')",
    "double('Infinity')",
    "double('-Inf')",
)
TEXTS = ("''", "'a'", "'B'", "'abc'", "'h\u00e9llo'", "'\U0001f600x'", "'1'", "'true'", "'2.5'")
BYTES = ("b''", "b'a'", "b'\\xff\\x00'")
TIMES = (
    "timestamp('2024-02-29T23:59:59.999999999Z')",
    "timestamp('0001-01-01T00:00:00Z')",
    "timestamp('9999-12-31T23:59:59.999Z')",
    "timestamp('2024-03-10T12:00:00.5+05:30')",
    "timestamp(0)",
)
DURATIONS = (
    "duration('0')",
    "duration('1h30m')",
    "duration('-1.5s')",
    "duration('2562047h')",
    "duration('1ns')",
)
OTHERS = (
    "true",
    "false",
    "null",
    "[1, 2]",
    "['a']",
    "{'a': 1}",
    "{1: 2}",
    "int",
    "optional.of(1)",
    "optional.none()",
)
OPAQUE = (
    "quantity('1k')",
    "quantity('1k').add(0)",
    "ip('10.0.0.1')",
    "cidr('10.0.0.0/8')",
    "url('/a')",
    "semver('1.2.3')",
    "format.dns1123Label()",
)
ALL = INTS + UINTS + DOUBLES + TEXTS + BYTES + TIMES + DURATIONS + OTHERS + OPAQUE
BINARY = ("+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in")
ALIKE = (INTS + UINTS + DOUBLES, TEXTS, BYTES, TIMES + DURATIONS)


def binary() -> list[str]:
    """All operators between numbers, texts and times, and a sample of those between any two values."""
    draw = random.Random(4)
    alike = [
        f"dyn({one}) {op} dyn({two})" for pool in ALIKE for one, op, two in product(pool, BINARY[:-1], pool)
    ]
    mixed = [f"dyn({one}) {op} dyn({two})" for one, op, two in product(ALL, BINARY, ALL)]
    return draw.sample(alike, 700) + draw.sample(mixed, 500)


CONVERSIONS = (
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "bytes",
    "duration",
    "timestamp",
    "type",
    "dyn",
    "size",
)
TEXT_NUMBERS = (
    "' 1'", "'+5'", "'-5'", "'0x10'", "'1_000'", "'9223372036854775808'", "'18446744073709551616'", "'1e3'", "'.5'",
    "'5.'", "'1e400'", "'-1e400'", "'0x1p-2'", "'0x1.8p1'", "'nan'", "'+Inf'", "'infinity'", "'1_0.5'", "'_1'",
    "'1__0'", "'T'", "'TRUE'", "'tRUE'", "'f'", "'0'", "'yes'",
)  # fmt: skip
TEXT_DURATIONS = (
    "'1h'", "'1.5h'", "'-1m30s'", "'+2s'", "'1us'", "'1\u00b5s'", "'1\u03bcs'", "'1ms'", "'100'", "'1d'", "''", "'-'",
    "'1.s'", "'.5s'", "'.s'", "'9223372036854775807ns'", "'9223372036854775808ns'", "'-9223372036854775808ns'",
    "'0.1234567891234s'", "'1h1h'", "'1 h'", "'1H'", "'0'", "'-0'", "'00s'", "'3000000h'", "'1.123456789123456789h'",
)  # fmt: skip
TEXT_TIMES = (
    "'2024-01-01T00:00:00Z'", "'2024-01-01T00:00:00z'", "'2024-01-01t00:00:00Z'", "'2024-01-01T00:00:00'",
    "'2024-01-01'", "'2024-1-1T00:00:00Z'", "'2024-02-30T00:00:00Z'", "'2023-02-29T00:00:00Z'",
    "'2024-01-01T24:00:00Z'", "'2024-01-01T23:60:00Z'", "'2024-01-01T23:59:60Z'", "'2024-01-01T5:00:00Z'",
    "'2024-01-01T00:00:00.1234567891Z'", "'2024-01-01T00:00:00,5Z'", "'2024-01-01T00:00:00+24:00'",
    "'2024-01-01T00:00:00+25:00'", "'2024-01-01T00:00:00-00:60'", "'2024-01-01T00:00:00+0100'",
    "'0000-01-01T00:00:00Z'", "'10000-01-01T00:00:00Z'", "'0001-01-01T00:00:00+01:00'",
    "'9999-12-31T23:59:59-01:00'", "'1969-12-31T23:59:59.5Z'", "'2024-01-01T00:00:00+00:00'",
)  # fmt: skip


def conversions() -> list[str]:
    """Each conversion of each value."""
    made = [f"{function}(dyn([{value}][0]))" for function in CONVERSIONS for value in ALL]
    made += [
        f"{function}(dyn([{text}][0]))"
        for function in ("int", "uint", "double", "bool")
        for text in TEXT_NUMBERS
    ]
    made += [f"duration(dyn([{text}][0]))" for text in TEXT_DURATIONS]
    made += [f"string(duration(dyn([{text}][0])))" for text in TEXT_DURATIONS]
    made += [f"timestamp(dyn([{text}][0]))" for text in TEXT_TIMES]
    made += [f"string(timestamp(dyn([{text}][0])))" for text in TEXT_TIMES]
    made += [
        f"timestamp(dyn([{each}][0]))"
        for each in ("253402300799", "253402300800", "-62135596800", "-62135596801")
    ]
    made += [f"string(double({each}))" for each in _DOUBLES]
    made += [f"-dyn({value})" for value in ALL] + [f"!dyn({value})" for value in ALL]
    return made


_DOUBLES = (
    "100000.0", "999999.0", "1000000.0", "1234567.0", "0.0001", "0.00001", "0.1", "1.0/3.0", "1e21", "1e20", "-1e100",
    "123456789012345680.0", "3.14", "100.0", "1e5", "12345.678",
)  # fmt: skip

LOGIC = [
    f"{one} {op} {two}"
    for one, op, two in product(
        ("true", "false", "1/0 > 0", "[1][5] > 0", "dyn(1)", "dyn('a')"),
        ("&&", "||"),
        ("true", "false", "1/0 > 0", "{'a': 1}['b'] > 0", "dyn(2)"),
    )
] + [
    "true ? 1 : 1/0",
    "false ? 1 : 1/0",
    "dyn(1) ? 1 : 2",
    "(1/0 > 0) ? 1 : 2",
    "true && true && false",
    "1/0 > 1 || 2/0 > 1 || true",
    "1/0 > 1 || 2 % 0 > 1",
    "2 % 0 > 1 && 1/0 > 1",
    "dyn([1]) == dyn([1.0])",
    "[1, 'a', true] == [1.0, 'a', true]",
    "[1, 2] == [1]",
    "{'a': 1} == {'a': 1.0}",
    "{1: 'a'} == {1u: 'a'}",
    "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}",
    "{'a': {'b': [1]}} == {'a': {'b': [1]}}",
    "{'a': 1} == {'b': 1}",
    "[null] == [null]",
    "[dyn(1), null] == [dyn(1), dyn(2)]",
    "[quantity('1')] == [quantity('1').add(0)]",
    "[quantity('1')] == [quantity('2').add(0)]",
    "[dyn(ip('::1'))] == [dyn(1)]",
    "[dyn(1)] == [dyn(ip('::1'))]",
    "optional.of(dyn(ip('::1'))) == optional.of(dyn(1))",
    "quantity('1') == quantity('1').add(0)",
    "quantity('1').add(0) == quantity('1')",
    "quantity('1') != quantity('1').add(0)",
    "dyn(1) == null",
    "null == dyn('a')",
    "type(null) == null_type",
    "type(type(1)) == type",
    "type(1) == type(2) && type(1u) != type(1)",
    "type([1]) == list && type({1: 2}) == map",
    "type(duration('1s')) == google.protobuf.Duration",
    "type(timestamp(0)) == google.protobuf.Timestamp",
    "type(optional.none()) == optional_type",
    "type(ip('::1')) == net.IP && type(cidr('::/0')) == net.CIDR",
    "9007199254740993 in [dyn(9007199254740992.0)]",
    "dyn(9007199254740993) in [9007199254740992.0]",
    "dyn(9007199254740992.0) in [9007199254740993]",
    "dyn(1.0) in [1, 2]",
    "dyn(1u) in [1, 2]",
    "dyn(-1) in [1u, 2u]",
    "dyn(double('NaN')) in [1.0, 2.0]",
    "dyn('a') in [1, 2]",
    "dyn(null) in [1, 2]",
    "dyn([1]) in [1, 2]",
    "[1] in [[1], [2]]",
    "[1.0] in [dyn([1]), dyn([2])]",
    "{'a': 1} in [{'a': 1}]",
    "duration('1s') in [duration('1000ms')]",
    "b'a' in [b'a']",
    "null in [dyn(1), null]",
    "1/0 in [dyn(1)]",
    "1/0 == 1 in []",
    "'a' in {'a': 1} && !('b' in {'a': 1})",
    "dyn(1.0) in {1: 2}",
    "dyn(1u) in {1: 2}",
    "dyn(1) in {1u: 2}",
    "dyn('1') in {1: 2}",
    "{1: 'a', 2: 'b'}[dyn(2.0)]",
    "{1: 'a', 2: 'b'}[dyn(2u)]",
    "{1u: 'a'}[dyn(1)]",
    "{1: 'a'}[dyn(1.5)]",
    "{true: 'a'}[true]",
    "{true: 'a'}[false]",
    "{'a': 1}.a",
    "{'a': 1}.b",
    "{'a': 1}['b']",
    "{'a': {'b': 2}}.a.b",
    "{'a': {'b': 2}}.a.c",
    "has({'a': 1}.a)",
    "has({'a': 1}.b)",
    "has({'a': {'b': 1}}.a.b)",
    "has({'a': {'b': 1}}.c.b)",
    "has(dyn(1).a)",
    "has(dyn([1]).a)",
    "dyn(1).a",
    "dyn([1]).a",
    "dyn('abc')[0]",
    "[1, 2][0]",
    "[1, 2][2]",
    "[1, 2][-1]",
    "[1, 2][dyn(1.0)]",
    "[1, 2][dyn(1.5)]",
    "[1, 2][dyn(1u)]",
    "[1, 2][dyn('a')]",
    "[1, 2][dyn(true)]",
    "[1, 2][dyn(null)]",
    "{'a': 1}[dyn(null)]",
    "{'a': 1}[dyn(b'a')]",
    "{'a': 1}[dyn([1])]",
    "dyn({'a': 1})[dyn(timestamp(0))]",
    "{'a': 1, 'a': 2}",
    "{1: 1, 1u: 2} == {1: 1, 1u: 2}",
    "[1] + [2.0, 'a']",
    "[] + [1]",
    "[1] + []",
    "'a' + 'b' == 'ab'",
    "size(b'abc') + size('h\u00e9') + size([1]) + size({1: 2})",
    "'\U0001f600'.size()",
]
