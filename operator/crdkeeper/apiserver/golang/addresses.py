"""IP addresses parsed and printed like Go's net/netip."""

from typing import Final

from crdkeeper.apiserver.golang.text import quote

_HEX: Final = frozenset("0123456789abcdefABCDEF")


class AddressError(Exception):
    """The text is not an IP address or network; `message` is Go's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def address_text(number: int, bits: int) -> str:
    """The canonical form of an address of 32 or 128 bits (netip.Addr.String)."""
    if bits == 32:
        return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
    return _v6_text(number)


def _v6_text(number: int) -> str:
    groups = [number >> shift & 0xFFFF for shift in range(112, -16, -16)]
    if number >> 32 == 0xFFFF:
        return "::ffff:" + address_text(number & 0xFFFFFFFF, 32)
    start = length = 0
    for at in range(8):
        end = at
        while end < 8 and groups[end] == 0:
            end += 1
        if end - at > length and end - at >= 2:
            start, length = at, end - at
    texts = [f"{each:x}" for each in groups]
    if not length:
        return ":".join(texts)
    return f"{':'.join(texts[:start])}::{':'.join(texts[start + length :])}"


def _failure(text: str, reason: str, at: str = "") -> AddressError:
    where = f" (at {quote(at)})" if at else ""
    return AddressError(f"ParseAddr({quote(text)}): {reason}{where}")


def parse_address(text: str) -> tuple[int, int, str]:
    """An address as a number, its bits (32 or 128), and its zone (netip.ParseAddr). Raises AddressError."""
    for each in text:
        if each == ".":
            return _v4(text, text), 32, ""
        if each == ":":
            number, zone = _v6(text)
            return number, 128, zone
        if each == "%":
            raise _failure(text, "missing IPv6 address")
    raise _failure(text, "unable to parse IP")


def _v4(whole: str, text: str) -> int:
    number = value = fields = digits = 0
    for at, each in enumerate(text):
        if each in "0123456789":
            if digits == 1 and value == 0:
                raise _failure(whole, "IPv4 field has octet with leading zero")
            value = value * 10 + int(each)
            digits += 1
            if value > 255:
                raise _failure(whole, "IPv4 field has value >255")
        elif each == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                raise _failure(whole, "IPv4 field must have at least one digit", text[at:])
            if fields == 3:
                raise _failure(whole, "IPv4 address too long")
            number = number << 8 | value
            fields += 1
            value = digits = 0
        else:
            raise _failure(whole, "unexpected character", text[at:])
    if fields < 3:
        raise _failure(whole, "IPv4 address too short")
    return number << 8 | value


def _v6(whole: str) -> tuple[int, str]:
    text, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _failure(whole, "zone must be a non-empty string")
    groups: list[int] = []
    ellipsis = -1
    if text.startswith("::"):
        ellipsis, text = 0, text[2:]
        if not text:
            return 0, zone
    while len(groups) < 8:
        digits, value = _group(whole, text)
        if text[digits : digits + 1] == ".":
            groups += _embedded(whole, text, groups, ellipsis)
            text = ""
            break
        groups.append(value)
        text = text[digits:]
        if not text:
            break
        if text[0] != ":":
            raise _failure(whole, "unexpected character, want colon", text)
        if len(text) == 1:
            raise _failure(whole, "colon must be followed by more characters", text)
        text = text[1:]
        if text[0] == ":":
            if ellipsis >= 0:
                raise _failure(whole, "multiple :: in address", text)
            ellipsis, text = len(groups), text[1:]
            if not text:
                break
    if text:
        raise _failure(whole, "trailing garbage after address", text)
    if len(groups) < 8:
        if ellipsis < 0:
            raise _failure(whole, "address string too short")
        groups[ellipsis:ellipsis] = [0] * (8 - len(groups))
    elif ellipsis >= 0:
        raise _failure(whole, "the :: must expand to at least one field of zeros")
    number = 0
    for each in groups:
        number = number << 16 | each
    return number, zone


def _group(whole: str, text: str) -> tuple[int, int]:
    digits = value = 0
    while digits < len(text) and text[digits] in _HEX:
        value = value << 4 | int(text[digits], 16)
        if digits > 3:
            raise _failure(whole, "each group must have 4 or less digits", text)
        digits += 1
    if not digits:
        raise _failure(whole, "each colon-separated field must have at least one digit", text)
    return digits, value


def _embedded(whole: str, text: str, groups: list[int], ellipsis: int) -> list[int]:
    if ellipsis < 0 and len(groups) != 6:
        reason = "embedded IPv4 address must replace the final 2 fields of the address"
        raise _failure(whole, reason, text)
    if len(groups) > 6:
        reason = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise _failure(whole, reason, text)
    number = _v4(whole, text)
    return [number >> 16, number & 0xFFFF]
