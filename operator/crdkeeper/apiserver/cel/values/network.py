"""IP addresses and networks as Go's net/netip reads and prints them, with the limits that Kubernetes' CEL
sets.
"""

import re
from typing import Final

from crdkeeper.apiserver.cel.values.values import MAX_INT, Opaque, Value, no_overload
from crdkeeper.apiserver.golang.text import quote

_HEX: Final = frozenset("0123456789abcdefABCDEF")
_LENGTH: Final = re.compile(r"[0-9]|[1-9][0-9]+", re.ASCII)


class AddressError(Exception):
    """A text that is no IP address or network; `message` is Go's."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Ip(Opaque):
    """An address: a number of 32 or 128 bits."""

    __slots__ = ("bits", "number")
    type_name = "net.IP"

    def __init__(self, number: int, bits: int) -> None:
        self.number = number
        self.bits = bits

    def equals(self, other: Value) -> bool:
        """Addresses are equal by family and number; other types have no such overload."""
        if type(other) is not Ip:
            raise no_overload()
        return self.bits == other.bits and self.number == other.number

    def text(self) -> str:
        """The canonical form (netip.Addr.String)."""
        if self.bits == 32:
            return ".".join(str(self.number >> shift & 255) for shift in (24, 16, 8, 0))
        return _v6_text(self.number)


class Cidr(Opaque):
    """A network: an address, whose host part may be other than zero, and the length of the prefix."""

    __slots__ = ("address", "length")
    type_name = "net.CIDR"

    def __init__(self, address: Ip, length: int) -> None:
        self.address = address
        self.length = length

    def equals(self, other: Value) -> bool:
        """Networks are equal by address and length; other types have no such overload."""
        if type(other) is not Cidr:
            raise no_overload()
        return self.length == other.length and self.address.equals(other.address)

    def text(self) -> str:
        """The address, a slash and the length."""
        return f"{self.address.text()}/{self.length}"

    def masked(self) -> "Cidr":
        """The network with the host part zeroed."""
        host = self.address.bits - self.length
        return Cidr(Ip(self.address.number >> host << host, self.address.bits), self.length)

    def contains(self, address: Ip) -> bool:
        """Whether an address of the same family is in the network."""
        host = self.address.bits - self.length
        return address.bits == self.address.bits and address.number >> host == self.address.number >> host


def _v6_text(number: int) -> str:
    groups = [number >> shift & 0xFFFF for shift in range(112, -16, -16)]
    if number >> 32 == 0xFFFF:
        return "::ffff:" + Ip(number & 0xFFFFFFFF, 32).text()
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


def parse_address(text: str) -> tuple[Ip, str]:
    """An address and its zone (netip.ParseAddr). Raises AddressError."""
    for each in text:
        if each == ".":
            return Ip(_v4(text, text), 32), ""
        if each == ":":
            return _v6(text)
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


def _v6(whole: str) -> tuple[Ip, str]:
    text, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _failure(whole, "zone must be a non-empty string")
    groups: list[int] = []
    ellipsis = -1
    if text.startswith("::"):
        ellipsis, text = 0, text[2:]
        if not text:
            return Ip(0, 128), zone
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
    return Ip(number, 128), zone


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


def ip(text: str) -> Ip:
    """An address as Kubernetes' ip() takes it. Raises AddressError."""
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        reason = f"IP Address {quote(text)} parse error during conversion from string: {error.message}"
        raise AddressError(reason) from None
    if zone:
        raise AddressError(f"IP address {quote(text)} with zone value is not allowed")
    if _mapped(address):
        raise AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _mapped(address: Ip) -> bool:
    return address.bits == 128 and address.number >> 32 == 0xFFFF


def cidr(text: str) -> Cidr:
    """A network as Kubernetes' cidr() takes it. Raises AddressError."""
    before, slash, length = text.rpartition("/")
    reason = ""
    if not slash:
        reason = "no '/'"
    else:
        try:
            address, zone = parse_address(before)
        except AddressError as error:
            reason = error.message
        else:
            reason = _prefix_problem(address, zone, length)
    if reason:
        raise AddressError(
            "network address parse error during conversion from string: "
            f"netip.ParsePrefix({quote(text)}): {reason}"
        )
    if _mapped(address):
        raise AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Cidr(address, int(length))


def _prefix_problem(address: Ip, zone: str, length: str) -> str:
    if zone:
        return "IPv6 zones cannot be present in a prefix"
    if not _LENGTH.fullmatch(length) or len(length) > 19 or int(length) > MAX_INT:
        return f"bad bits after slash: {quote(length)}"
    return "prefix length out of range" if int(length) > address.bits else ""
