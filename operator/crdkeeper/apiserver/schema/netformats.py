"""Formats of network names, as parsed by Go's net, net/url and net/mail."""

import ipaddress
import re

from crdkeeper.apiserver.schema.finding import UndecidedValue

_OCTETS = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)\.([0-9]+)")
_NUMBER = re.compile(r"[0-9]+")


def is_ipv4(text: str) -> bool:
    """An address with a dot in it, with leading zeros allowed: also ::ffff:1.2.3.4 (ParseIPSloppy)."""
    return "." in text and _is_sloppy_ip(text)


def is_ipv6(text: str) -> bool:
    """An address with a colon in it, without a zone (net.ParseIP)."""
    if "." in text and text.find(".") < text.find(":"):
        return False
    return ":" in text and _is_strict_ipv6(text)


def is_cidr(text: str) -> bool:
    """An address, a slash and the number of bits, with leading zeros allowed (ParseCIDRSloppy)."""
    address, slash, bits = text.partition("/")
    if not slash or not _NUMBER.fullmatch(bits):
        return False
    if _is_sloppy_ipv4(address):
        return _is_small(bits, 32)
    return _is_sloppy_ipv6(address) and _is_small(bits, 128)


def _is_sloppy_ip(text: str) -> bool:
    for char in text:
        if char == ".":
            return _is_sloppy_ipv4(text)
        if char == ":":
            return _is_sloppy_ipv6(text)
    return False


def _is_sloppy_ipv4(text: str) -> bool:
    found = _OCTETS.fullmatch(text)
    return found is not None and all(_is_small(each, 255) for each in found.groups())


def _is_small(digits: str, limit: int) -> bool:
    rest = digits.lstrip("0")
    return len(rest) <= 3 and int(rest or "0") <= limit


def _is_sloppy_ipv6(text: str) -> bool:
    parts = text.split(":")
    last = parts[-1]
    if "." in last:
        if not _is_sloppy_ipv4(last):
            return False
        parts[-1] = "1.1.1.1"
    shortened = [each.lstrip("0") or "0" if each else each for each in parts]
    return _is_strict_ipv6(":".join(shortened))


def _is_strict_ipv6(text: str) -> bool:
    if "%" in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


_HEX = "[0-9a-fA-F]"
_MAC = re.compile(
    "|".join(
        [
            *(rf"{_HEX}{{2}}(?:{sign}{_HEX}{{2}}){{{n - 1}}}" for sign in (":", "-") for n in (6, 8, 20)),
            *(rf"{_HEX}{{4}}(?:\.{_HEX}{{4}}){{{n // 2 - 1}}}" for n in (6, 8, 20)),
            *(rf"{_HEX}{{{2 * n}}}" for n in (6, 8, 20)),
        ]
    )
)


def is_mac(text: str) -> bool:
    """A hardware address of 6, 8 or 20 bytes (net.ParseMAC)."""
    return bool(_MAC.fullmatch(text))


_BLANK = " \t"
_NO_ATOM = frozenset('()<>[]:;@\\,"')


def is_email(text: str) -> bool:
    """An address that net/mail.ParseAddress accepts. Raises UndecidedValue for display names and comments."""
    stripped = text.strip(_BLANK)
    local, at, domain = stripped.partition("@")
    if at and _is_dot_atom(local) and _is_dot_atom(domain.lstrip(_BLANK)):
        return True
    if any(each in text for each in '"(<[:'):
        raise UndecidedValue("whether this is a mail address with a name or a comment is not decided here")
    return False


def _is_dot_atom(text: str) -> bool:
    if not text or text.startswith(".") or text.endswith(".") or ".." in text:
        return False
    return all(each >= "!" and each != "\x7f" and each not in _NO_ATOM for each in text)


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_HOST_BYTES = re.compile(
    r"(?:[A-Za-z0-9._~!\"$&'()*+,;:=<>\[\]-]|[^\x00-\x7f]|%(?:25|[89a-fA-F][0-9a-fA-F]))*"
)
_ESCAPES = re.compile(r"(?:[^%]|%[0-9a-fA-F]{2})*", re.DOTALL)
_PORT = re.compile(r"(:[0-9]*)?")


def is_request_uri(text: str) -> bool:
    """An absolute URI or path (net/url.ParseRequestURI). Raises UndecidedValue for zones in addresses."""
    if not text or any(each < " " or each == "\x7f" for each in text):
        return False
    if text == "*":
        return True
    if text.startswith(":"):
        return False
    found = _SCHEME.match(text)
    scheme = found[0][:-1].lower() if found else ""
    rest = text[found.end() :] if found else text
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return bool(scheme)
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if not _is_authority(scheme, authority):
            return False
        rest = slash + path
    return bool(_ESCAPES.fullmatch(rest))


def _is_authority(scheme: str, authority: str) -> bool:
    user, at, host = authority.rpartition("@")
    if at and not (_USER.fullmatch(user) and _ESCAPES.fullmatch(user)):
        return False
    bracket = host.rfind("[")
    if bracket > 0:
        return False
    if bracket == 0:
        end = host.rfind("]")
        if end < 0 or not _PORT.fullmatch(host[end + 1 :]):
            return False
        address = host[1:end]
        if "%" in address:
            raise UndecidedValue("an address with a zone is not decided here")
        return _is_strict_ipv6(address)
    colon = host.find(":")
    if colon >= 0 and scheme not in ("http", "https"):
        colon = host.rfind(":")
    if colon >= 0 and not _PORT.fullmatch(host[colon:]):
        return False
    return bool(_HOST_BYTES.fullmatch(host))
