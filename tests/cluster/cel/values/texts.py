# ruff: noqa: E501
"""Strings, formats, regular expressions, times, URLs and so on."""

from itertools import product

from tests.cluster.cel.values.operators import DURATIONS, TIMES

STRINGS = [
    *(f"'h\u00e9llo w\u00f6rld'.charAt({at})" for at in (-1, 0, 1, 10, 11, 12)),
    *(f"{text}.indexOf({part})" for text in ("'banana'", "''", "'\u00e9\u00e9a'") for part in ("'a'", "'an'", "''", "'x'", "'bananas'")),
    *(f"{text}.lastIndexOf({part})" for text in ("'banana'", "''", "'\u00e9\u00e9a'") for part in ("'a'", "'an'", "''", "'x'", "'bananas'")),
    *(f"'banana'.{name}({part}, {at})" for name in ("indexOf", "lastIndexOf") for part in ("'a'", "'an'", "''", "'na'") for at in (-1, 0, 1, 3, 5, 6, 7)),
    *(f"'h\u00e9llo'.substring({start})" for start in (-1, 0, 2, 5, 6)),
    *(f"'h\u00e9llo'.substring({start}, {end})" for start, end in ((0, 5), (1, 1), (2, 1), (-1, 2), (0, 6), (5, 5), (6, 6), (-2, -1))),
    *(f"{text}.{name}()" for text in ("'HeLLo \u00c9\u00e9'", "''", "'\u0130'") for name in ("lowerAscii", "upperAscii")),
    *(f"{text}.trim()" for text in ("'  a b '", "'\\t\\n\\v\\f\\r x \\u0085\\u00a0'", "'\\u2003\\u3000x\\u200b'", "''", "'\\u001cx\\u001f'")),
    *(f"'banana'.replace({old}, {new})" for old in ("'a'", "'an'", "''", "'x'") for new in ("'o'", "''", "'--'")),
    *(f"'banana'.replace({old}, 'X', {count})" for old in ("'a'", "''") for count in (-1, 0, 1, 2, 100)),
    *(f"{text}.split({sep})" for text in ("'a,b,,c'", "''", "'h\u00e9'", "','") for sep in ("','", "''", "'x'")),
    *(f"'a,b,c'.split({sep}, {count})" for sep in ("','", "''") for count in (-1, 0, 1, 2, 3, 9)),
    *(f"{values}.join({sep})" for values in ("['a', 'b']", "['x']", "[]") for sep in ("", "'-'", "''")),
    "dyn([1, 2]).join(',')",
    "[dyn('a'), dyn(1)].join(',')",
    "[dyn('a'), dyn(1.5)].join()",
    "[dyn('a'), dyn(true)].join()",
    *(f"strings.quote({text})" for text in ("'a\"b'", "'\\n\\t\\\\'", "'h\u00e9\\u0000'", "'\\a\\b\\f\\r\\v'", "''")),
    *(f"{text}.{name}({part})" for text in ("'banana'", "''") for name in ("contains", "startsWith", "endsWith") for part in ("'ban'", "'na'", "''", "'x'")),
    *(f"dyn({one}).{name}(dyn({two}))" for name in ("contains", "startsWith", "matches", "charAt", "indexOf", "split", "find", "format") for one, two in (("1", "'a'"), ("'a'", "1"), ("timestamp(0)", "'a'"), ("null", "'a'"), ("[1]", "'a'"))),
    *(f"dyn({one}).{name}()" for name in ("lowerAscii", "trim", "size", "reverse", "join", "sort", "isSorted", "first", "distinct") for one in ("1", "'abc'", "duration('1s')", "null", "b'a'", "{1: 2}")),
]  # fmt: skip

FORMATS = [
    *(f"('%' + '{clause[1:]}').format([{value}])" for clause in ("%s", "%d", "%f", "%.2f", "%.0f", "%e", "%.3e", "%b", "%x", "%X", "%o") for value in (
        "1", "-255", "255u", "0.0", "-0.0", "1234567.891", "-1234.5", "2.5", "1e21", "1e-7", "0.005", "'a b'", "b'\\x01\\xff'", "b'ab'",
        "true", "null", "double('NaN')", "double('Infinity')", "double('-Infinity')", "'NaN'", "'Infinity'", "timestamp('2024-02-29T12:00:00.5Z')",
        "duration('90s')", "[1, 'a', 2.5, null]", "{'b': 2, 'a': 1.5}", "int", "9223372036854775807", "-9223372036854775808",
    )),
    *(f"'%s'.format([{value}])" for value in (
        "[timestamp(0), duration('1s')]", "[b'a']", "['q\\\"uote\\n\u00e9']", "[double('NaN'), double('Infinity')]", "{1: 2, 10: 3, 2: 4}",
        "{true: 1}", "[[1], [2]]", "[{'a': 1}]", "[int, string]", "{1u: 2}", "[dyn(1u), dyn(true)]", "[]", "{}", "dyn(ip('::1'))",
        "dyn(quantity('1'))", "[dyn(ip('::1'))]", "dyn(optional.of(1))", "{1.5: 2}",
    )),
    "'%%'.format([])", "'100%'.format([1])", "'%'.format([])", "'%s'.format([])", "'%s %s'.format(['a'])", "'%q'.format([1])", "'%.f'.format([1.0])",
    "'%.'.format([1.0])", "'%.2'.format([1.0])", "'%.5s'.format(['a'])", "'%\u00e9'.format([1])", "'%.10f'.format([1.0/3.0])", "'no'.format(['a'])",
    "'%s-%s'.format(['a', 1])", "'%d%%'.format([50])", "'%.1f %.1f %.1f'.format([0.25, 0.35, 0.45])", "'%.2e'.format([1.005])", "'%.1e'.format([1.15])",
    "'%.2f'.format([-0.001])", "'%f'.format([1e15])", "'%.20f'.format([0.1])", "'%e'.format([0.0])", "'%e'.format([123456789.0])", "'%.0e'.format([2.5])",
    *(f"('%' + '{rest}').format([{value}])" for rest in ("q", "", ".2", ".999999999999999999999f", ".x", "d", "b", "e", "s %") for value in ("1", "'a'")),
]  # fmt: skip

REGEXES = [
    *(f"{text}.matches({pattern})" for text in ("'abc123'", "''", "'h\u00e9llo'", "'a\\nb'") for pattern in ("'[a-z]+[0-9]+'", "'^$'", "'^h.llo$'", "'a.b'", "'(?s)a.b'", "'^a$'", "'(?m)^b$'", "'\\\\\\\\d{3}$'")),
    *(f"'baac abc'.find({pattern})" for pattern in ("'a+'", "'x'", "'b?'", "''", "'(?i)C'", "'[^ ]+$'")),
    *(f"{text}.findAll({pattern})" for text in ("'baac abc'", "''", "'\u00e9a\u00e9'") for pattern in ("'a*'", "'x'", "''", "'[a-c]+'", "'a|'", "'\\\\\\\\b'")),
    *(f"'a1b22c'.findAll('[0-9]+', {count})" for count in (-1, 0, 1, 2, 3)),
    *(f"'abc'.{name}(dyn('a') + '{rest}')" for name in ("matches", "find", "findAll") for rest in ("(", "[", "**", "\\\\\\\\q", "{2,1}", "{1001}", "(?P<n>b)", "(?<n>b)", "\\\\\\\\pN", "\\\\\\\\p{Greek}", "(?=b)", "\\\\\\\\1")),
    "matches('abc', 'b')",
]  # fmt: skip

GETTERS = (
    "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds",
)  # fmt: skip
ZONES = (
    "'UTC'", "''", "'America/New_York'", "'Europe/Berlin'", "'Asia/Kolkata'", "'+05:30'", "'-08:00'", "'02:00'", "'-00:30'", "'+14:45'", "'Mars/Base'",
    "'europe/berlin'", "'5:xx'", "'x:30'", "'../etc'", "'/abs'", "'+99999999999999999999:00'", "'01:99'", "':'",
)  # fmt: skip
CLOCKS = [
    *(f"{time}.{getter}()" for time in TIMES for getter in GETTERS),
    *(f"{TIMES[0]}.{getter}({zone})" for getter in ("getHours", "getDate", "getMonth") for zone in ZONES),
    *(f"timestamp('{time}').{getter}('{zone}')" for time, getter, zone in product(
        ("1850-06-01T12:00:00Z", "1999-12-31T23:30:00Z", "2024-07-04T00:30:00Z", "2024-11-03T06:30:00Z"),
        ("getFullYear", "getHours", "getMinutes", "getDayOfYear"), ("America/New_York", "Asia/Kolkata"),
    )),
    *(f"{span}.{getter}()" for span in (*DURATIONS, "duration('3599.9999999999s')", "duration('-61.5s')") for getter in GETTERS[6:]),
    *(f"dyn({value}).{getter}()" for value in ("1", "'a'", "duration('1s')", "null") for getter in ("getFullYear", "getHours")),
    "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
    "timestamp('0001-01-01T00:00:00Z') - duration('1ns')",
    "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
    "timestamp('2024-01-01T00:00:00+02:00') == timestamp('2023-12-31T22:00:00Z')",
    "string(timestamp('2024-01-01T00:00:00+02:00') + duration('1h'))",
    "duration('9223372036854775807ns') + duration('1ns')",
    "-duration('-9223372036854775808ns')",
    "duration('1s') + timestamp(5)",
]  # fmt: skip

_URLS = (
    "'https://example.com'", "'https://example.com:80/a%20b/c?x=1&y=2&x=3#frag'", "'/path'", "'/a b/\u00e9'", "''", "'a'", "'//host/path'", "'http://'",
    "'HTTP://User:Pa%20ss@EXAMPLE.com:8080/x'", "'https://[::1]:80/'", "'https://[::1]'", "'https://[fe80::1%25en0]:80/'", "'https://[::1'", "'https://a:b'",
    "'https://a:80:90'", "'ftp://a:80:90'", "'mailto:joe@example.com'", "'http://a/%zz'", "'http://a/%'", "'*'", "'http://a?'", "'http://a/?q=a+b&c=%41&d'",
    "'http://a?x;y=1&z=2'", "'http://a b/'", "'http://a/b c'", "'1http://a'", "':a'", "'http://a%41b/'", "'http://a\\\\nb'", "'http:///path'", "'http:/path'",
    "'https://[1.2.3.4]/'", "'http://a/[b]'", "'http://a/%2f%41'", "'http://u@h@a/'", "'http://u#@a/'", "'http://a/p?#%zz'", "'x:'", "'http://a<b>/'",
    "'http://\u00e9.com/'", "'http://a/?%zz=1&b=2'", "'http://a/b?c?d'", "'http://[::ffff:1.2.3.4]/'",
)  # fmt: skip
URLS = [
    *(f"isURL({text})" for text in _URLS),
    *(f"url({text}).{getter}()" for text in _URLS for getter in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery")),
    *(f"url({one}) == url({two})" for one, two in product((*_URLS[:9:2], "'https://example.com'", "'HTTPS://example.com'", "'http://a?'", "'http://a'"), repeat=2)),
    *(f"format.uri().validate({text})" for text in _URLS[::3]),
]  # fmt: skip

_ADDRESSES = (
    "'127.0.0.1'", "'0.0.0.0'", "'255.255.255.255'", "'224.0.0.1'", "'224.0.1.1'", "'169.254.1.1'", "'10.1.2.3'", "'::'", "'::1'", "'2001:db8::abcd'",
    "'2001:DB8::0:0:ABCD'", "'fe80::1'", "'febf::1'", "'fec0::1'", "'ff02::1'", "'ff01::1'", "'ff12::1'", "'fd00::1'", "'1:2:3:4:5:6:7:8'", "'1::8'",
    "'1:0:0:4:0:0:0:8'", "'::1.2.3.4'", "'1:0:3:4:5:6:7:8'", "'0:0:1::'", "'240.0.0.1'", "'239.1.1.1'",
)  # fmt: skip
_NO_ADDRESSES = (
    "''", "'a'", "'1.2.3'", "'1.2.3.4.5'", "'1.2.3.256'", "'01.2.3.4'", "'1..3.4'", "'.1.2.3'", "'1.2.3.'", "'1.2.3.a'", "':::1'", "'1:2'", "'12345::'",
    "'::g'", "'1::2::3'", "'fe80::1%eth0'", "'fe80::1%'", "'%eth0'", "'::ffff:1.2.3.4'", "'1:2:3:4:5:6:7:8:9'", "'1:2:3:4:5:6:7::8'", "'1:'", "':1'",
    "'::1.2.3'", "'1:2:3:4:5:6:7:1.2.3.4'", "'1.2.3.4::'", "'\u00e9::'", "'1:2:3:4:5:6:7:8:'", "'1:2:3:4:5:6:7'", "'1:2:3:4:5:1.2.3.4'", "' 1.2.3.4'",
)  # fmt: skip
_NETWORKS = (
    "'10.0.0.0/8'",
    "'192.168.0.1/24'",
    "'0.0.0.0/0'",
    "'10.1.2.3/32'",
    "'2001:db8::/32'",
    "'::/0'",
    "'::1/128'",
    "'fe80::1/10'",
)
_NO_NETWORKS = (
    "'10.0.0.0'", "'10.0.0.0/33'", "'10.0.0.0/'", "'10.0.0.0/08'", "'10.0.0.0/+8'", "'10.0.0.0/-1'", "'10.0.0/8'", "'::/129'", "'fe80::1%a/10'",
    "'::ffff:1.2.3.4/96'", "'/8'", "''", "'10.0.0.0/8/8'", "'10.0.0.0/a'", "'10.0.0.0/99999999999999999999'", "'10.0.0.0/0'", "'10.0.0.0/00'",
)  # fmt: skip
ADDRESSES = [
    *(f"isIP({text})" for text in _ADDRESSES + _NO_ADDRESSES),
    *(f"ip({text})" for text in _ADDRESSES + _NO_ADDRESSES),
    *(f"string(ip({text}))" for text in _ADDRESSES),
    *(f"ip.isCanonical({text})" for text in _ADDRESSES + _NO_ADDRESSES[::4]),
    *(f"ip({text}).{name}()" for text in _ADDRESSES for name in ("family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast")),
    *(f"isCIDR({text})" for text in _NETWORKS + _NO_NETWORKS),
    *(f"cidr({text})" for text in _NETWORKS + _NO_NETWORKS),
    *(f"{form.format(text)}" for text in _NETWORKS for form in ("string(cidr({}))", "cidr({}).masked()", "cidr({}).prefixLength()", "cidr({}).ip()")),
    *(f"cidr({text}).containsIP({other})" for text in _NETWORKS for other in ("'10.1.2.3'", "ip('2001:db8::1')", "'x'")),
    *(f"cidr({text}).containsCIDR({other})" for text in _NETWORKS for other in ("'10.1.0.0/16'", "cidr('2001:db8:1::/48')", "'10.0.0.0/7'", "'x'")),
    "dyn('10.0.0.1').ip()", "ip(dyn(cidr('10.0.0.0/8')))", "dyn(1).family()", "cidr('10.0.0.0/8').containsIP(dyn(1))", "ip('10.0.0.1') == ip('10.0.0.1')",
    "cidr('10.0.0.0/8') == cidr('10.0.0.1/8')", "dyn(ip('::1')) == dyn(1)", "dyn(1) == dyn(ip('::1'))", "dyn(ip('::1')) != dyn(1)",
]  # fmt: skip
