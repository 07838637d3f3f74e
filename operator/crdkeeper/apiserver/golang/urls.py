"""URLs parsed and printed like Go's net/url (Go 1.26).

Strings are kept as bytes, as in Go: each character of a part is one byte of UTF-8.
"""

from typing import Final

from crdkeeper.apiserver.golang.addresses import AddressError, parse_address
from crdkeeper.apiserver.golang.text import quote

_ALPHANUMERIC: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_MARKS: Final = "-_.~"
_RESERVED: Final = "$&+,/:;=?@"
_HOST: Final = frozenset(_ALPHANUMERIC + _MARKS + "!$&'()*+,;=:[]<>\"")
_PATH: Final = frozenset(_ALPHANUMERIC + _MARKS + _RESERVED) - {"?"}
_USER: Final = frozenset(_ALPHANUMERIC + _MARKS + _RESERVED) - frozenset("@/?:")
_FRAGMENT: Final = frozenset(_ALPHANUMERIC + _MARKS + _RESERVED + "!()*")
_USERINFO: Final = frozenset(_ALPHANUMERIC + "-._:~!$&'()*+,;=%@")
_ALWAYS_VALID: Final = frozenset("!$&'()*+,;=:@[]%")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_MAX_PARAMETERS: Final = 10_000
_HOST_MODE, _ZONE_MODE, _OTHER_MODE = range(3)


class UrlError(Exception):
    """The text is not a URL; `message` is Go's, without the operation and the text."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Url:
    """The parts of a URL."""

    __slots__ = (
        "force_query",
        "fragment",
        "host",
        "omit_host",
        "opaque",
        "path",
        "query",
        "raw_fragment",
        "raw_path",
        "scheme",
        "user",
    )

    def __init__(self) -> None:
        self.scheme = self.opaque = self.host = self.path = self.raw_path = self.query = ""
        self.fragment = self.raw_fragment = ""
        self.user: str | None = None
        self.force_query = self.omit_host = False

    def hostname_and_port(self) -> tuple[str, str]:
        """The host without brackets, and the port or an empty string (splitHostPort)."""
        host, port = self.host, ""
        colon = host.rfind(":")
        if colon >= 0 and _valid_port(host[colon:]):
            host, port = host[:colon], host[colon + 1 :]
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def escaped_path(self) -> str:
        """The original path if it was valid, else escaped again (URL.EscapedPath)."""
        return _escaped_part(self.path, self.raw_path, _PATH) if self.path != "*" else "*"

    def parameters(self) -> dict[str, list[str]]:
        """The parameters of the query, without malformed ones (URL.Query)."""
        found: dict[str, list[str]] = {}
        if self.query.count("&") + 1 > _MAX_PARAMETERS:
            return found
        for each in self.query.split("&"):
            if not each or ";" in each:
                continue
            key, _, value = each.partition("=")
            try:
                name, text = (unescape(part.replace("+", " ")) for part in (key, value))
            except UrlError:
                continue
            found.setdefault(name, []).append(text)
        return found

    def text(self) -> str:
        """The URL reassembled (URL.String), which determines equality."""
        made = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            made += self.opaque
        else:
            made += self._authority()
            path = self.escaped_path()
            if path and path[0] != "/" and self.host:
                made += "/"
            if not made and ":" in path.split("/", 1)[0]:
                made += "./"
            made += path
        if self.force_query or self.query:
            made += f"?{self.query}"
        if self.fragment:
            made += f"#{_escaped_part(self.fragment, self.raw_fragment, _FRAGMENT)}"
        return made

    def _authority(self) -> str:
        if not self.scheme and not self.host and self.user is None:
            return ""
        if self.omit_host and not self.host and self.user is None:
            return ""
        made = "//" if self.host or self.path or self.user is not None else ""
        if self.user is not None:
            made += f"{self.user}@"
        return made + _escape(self.host, _HOST)


def _escaped_part(plain: str, raw: str, safe: frozenset[str]) -> str:
    if raw and all(each in _ALWAYS_VALID or each in safe for each in raw):
        try:
            if unescape(raw) == plain:
                return raw
        except UrlError:
            pass
    return _escape(plain, safe)


def _escape(text: str, safe: frozenset[str]) -> str:
    return "".join(each if each in safe else f"%{ord(each):02X}" for each in text)


def unescape(text: str, mode: int = _OTHER_MODE) -> str:
    """The text with its percent escapes decoded. Raises UrlError."""
    made = []
    at = 0
    while at < len(text):
        each = text[at]
        if each == "%":
            code = text[at + 1 : at + 3]
            if len(code) < 2 or not _HEX.issuperset(code):
                raise UrlError(f"invalid URL escape {_quoted(text[at : at + 3])}")
            value = int(code, 16)
            if mode == _HOST_MODE and value < 0x80 and code != "25":
                raise UrlError(f"invalid URL escape {_quoted(text[at : at + 3])}")
            if mode == _ZONE_MODE and code != "25" and value != 0x20 and chr(value) not in _HOST:
                raise UrlError(f"invalid URL escape {_quoted(text[at : at + 3])}")
            made.append(chr(value))
            at += 3
            continue
        if mode != _OTHER_MODE and ord(each) < 0x80 and each not in _HOST:
            raise UrlError(f"invalid character {_quoted(each)} in host name")
        made.append(each)
        at += 1
    return "".join(made)


def _quoted(text: str) -> str:
    return quote(text.encode("latin-1").decode("utf-8", "surrogateescape"))


def _valid_port(text: str) -> bool:
    return not text or (text[0] == ":" and all(each in "0123456789" for each in text[1:]))


def parse_request(text: str) -> Url:
    """An absolute URL or path, as in an HTTP request (url.ParseRequestURI). Raises UrlError."""
    return _parse(text.encode().decode("latin-1"), via_request=True)


def parse(text: str) -> Url:
    """A URL or reference, with its fragment (url.Parse). Raises UrlError."""
    before, _, fragment = text.encode().decode("latin-1").partition("#")
    url = _parse(before, via_request=False)
    if fragment:
        url.fragment = unescape(fragment)
        url.raw_fragment = "" if _escape(url.fragment, _FRAGMENT) == fragment else fragment
    return url


def _parse(text: str, *, via_request: bool) -> Url:
    if any(each < " " or each == "\x7f" for each in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise UrlError("empty url")
    url = Url()
    if text == "*":
        url.path = "*"
        return url
    scheme, rest = _scheme(text)
    url.scheme = "".join(each.lower() if each.isascii() else each for each in scheme)
    if rest.endswith("?") and rest.count("?") == 1:
        url.force_query, rest = True, rest[:-1]
    else:
        rest, _, url.query = rest.partition("?")
    if not rest.startswith("/"):
        if url.scheme:
            url.opaque = rest
            return url
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.split("/", 1)[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if (url.scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        _set_authority(url, authority)
    elif url.scheme and rest.startswith("/"):
        url.omit_host = True
    url.path = unescape(rest)
    url.raw_path = "" if _escape(url.path, _PATH) == rest else rest
    return url


def _scheme(text: str) -> tuple[str, str]:
    for at, each in enumerate(text):
        if each.isascii() and each.isalpha():
            continue
        if each in "0123456789+-.":
            if at == 0:
                return "", text
        elif each == ":":
            if at == 0:
                raise UrlError("missing protocol scheme")
            return text[:at], text[at + 1 :]
        else:
            return "", text
    return "", text


def _set_authority(url: Url, authority: str) -> None:
    userinfo, at, host = authority.rpartition("@")
    url.host = _host(url.scheme, host)
    if not at:
        return
    if not _USERINFO.issuperset(userinfo):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    url.user = _escape(unescape(name), _USER)
    if colon:
        url.user += ":" + _escape(unescape(password), _USER)


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        return _literal_host(host)
    first = host.find(":")
    if first >= 0:
        last = host.rfind(":")
        port = host[first if scheme in ("http", "https") else last :]
        if not _valid_port(port):
            raise UrlError(f"invalid port {_quoted(port)} after host")
    return unescape(host, _HOST_MODE)


def _literal_host(host: str) -> str:
    close = host.rfind("]")
    if close < 0:
        raise UrlError("missing ']' in host")
    port = host[close + 1 :]
    if not _valid_port(port):
        raise UrlError(f"invalid port {_quoted(port)} after host")
    name = host[1:close]
    zone = name.find("%25")
    if zone >= 0:
        name = unescape(name[:zone], _HOST_MODE) + unescape(name[zone:], _ZONE_MODE)
    else:
        name = unescape(name, _HOST_MODE)
    try:
        _, bits, _ = parse_address(name)
    except AddressError as error:
        raise UrlError(f"invalid host: {error.message}") from None
    if bits == 32:
        raise UrlError("invalid IP-literal")
    return f"[{name}]{port}"
