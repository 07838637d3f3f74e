"""String formats parsed like Go's libraries; tests/cluster compares such texts with the server."""

import pytest

from crdkeeper.apiserver.schema.finding import UndecidedValue
from crdkeeper.apiserver.schema.formats import check_of, is_supported

GOOD_AND_BAD: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "uri": (
        ("http://h", "https://h:1/a?b=%zz#c", "/p", "mailto:a@b", "*", "a:", "http://[::1]:80/",
            "http://%80/",
         "tcp://h:1:2/", "http:///x", "http://u:p@h/"),
        ("", "path", "http://[::1", "http://a b/", "http://a/%zz", "http://%41/", "http://h:x/",
            "http://h:1:2/",
         ":x", "http://[1.2.3.4]/", "a\x01:"),
    ),
    "email": (("a@b", " a.b@c ", "é@b", "a@ b"), ("", "ab", ".a@b", "a..b@c", "@b", "a b@c", "a@b,c")),
    "hostname": (("a", "a.bc", "é.com", "x" * 63 + ".com"), ("", "-a", "a_b", "a..b", "x" * 64 + ".com")),
    "ipv4": (("1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"), ("1.2.3", "256.1.1.1", "::1", "1.2.3.4.")),
    "ipv6": (("::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7::"), ("fe80::1%e", "1.2.3.4", "1::2::3",
        "::ffff:01.2.3.4")),
    "cidr": (("010.0.0.0/08", "::/0", "00001::/64", "1.2.3.4/" + "0" * 5000 + "8"),
        ("10.0.0.0", "10.0.0.0/33", "::/129", "1.2.3.4/+8")),
    "mac": (("01:23:45:67:89:ab", "0123.4567.89ab", "0123456789AB"), ("01:23:45:67:89", "01:23:45:67-89:ab")),
    "uuid4": (("123E4567-E89B-42D3-A456-426614174000",), ("123e4567-e89b-12d3-a456-426614174000",)),
    "isbn": (("0321751043", "978-0321751041"), ("0321751044", "978-0321751042")),
    "creditcard": (("4111 1111 1111 1111",), ("4111111111111112", "")),
    "ssn": (("111-22-3333",), ("111223333",)),
    "byte": (("aGVsbG8=",), ("", "aGVsbG8", "a-_b", "aGVs\n")),
    "date": (("2024-02-29", "0000-02-29"), ("2026-02-29", "2026-1-2", "2026-01-02T")),
    # Of U+0130, Go makes an i, and not two characters.
    "date-time": (("2026-01-02T03:04:05Z", "2026-01-02t03:04:05x5+99:99", "2026-01-02T03:04:05\u01305Z"),
        ("2026-01-02T24:00:00Z", "2026-01-02")),
    "duration": (
        ("0", "1h30m", ".5s", "1.s", "22 ns", "2 weeks", "9999999h", "1.99999999999999999999h"),
        ("", "5", "h", "3 fortnights", "99999999999999999999h"),
    ),
    "k8s-short-name": (("a-b", "x" * 63), ("A", "a.b", "", "x" * 64)),
    "k8s-long-name": (("a.b", "x" * 64 + ".b"), ("a..b", "y" * 254)),
    "password": (("", "x"), ()),
}  # fmt: skip


@pytest.mark.parametrize("format", GOOD_AND_BAD)
def test_formats(format: str) -> None:
    check = check_of(format)
    assert check is not None
    good, bad = GOOD_AND_BAD[format]
    assert [each for each in good if not check(each)] == []
    assert [each for each in bad if check(each)] == []


@pytest.mark.parametrize(
    ("format", "text"), [("email", "A <a@b>"), ("email", "a@b (c)"), ("uri", "http://[fe80::1%25e]/"),
        ("uuid", "\ud800")]
)  # fmt: skip
def test_left_to_the_server(format: str, text: str) -> None:
    check = check_of(format)
    assert check is not None
    with pytest.raises(UndecidedValue):
        check(text)


def test_which_formats_mean_something() -> None:
    assert is_supported("d-a-t-e", "string") and is_supported("int32", "integer")
    assert not is_supported("int32", "string") and not is_supported("date", "integer")
    assert check_of("nonsense") is None
