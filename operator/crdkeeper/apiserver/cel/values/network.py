"""IP addresses and networks as values of CEL, with Kubernetes' restrictions."""

import re
from typing import Final

from crdkeeper.apiserver.cel.values.values import Opaque, Value, no_overload
from crdkeeper.apiserver.golang.addresses import AddressError, address_text, parse_address
from crdkeeper.apiserver.golang.numbers import MAX_INT
from crdkeeper.apiserver.golang.text import quote

_LENGTH: Final = re.compile(r"[0-9]|[1-9][0-9]+", re.ASCII)


class Ip(Opaque):
    """An address: a number of 32 or 128 bits."""

    __slots__ = ("bits", "number")
    type_name = "net.IP"

    def __init__(self, number: int, bits: int) -> None:
        self.number = number
        self.bits = bits

    def equals(self, other: Value) -> bool:
        """Addresses are equal by family and number; there is no overload for other types."""
        if type(other) is not Ip:
            raise no_overload()
        return self.bits == other.bits and self.number == other.number

    def text(self) -> str:
        """The canonical form (netip.Addr.String)."""
        return address_text(self.number, self.bits)


class Cidr(Opaque):
    """A network: an address, whose host part may be non-zero, and the length of the prefix."""

    __slots__ = ("address", "length")
    type_name = "net.CIDR"

    def __init__(self, address: Ip, length: int) -> None:
        self.address = address
        self.length = length

    def equals(self, other: Value) -> bool:
        """Networks are equal by address and length; there is no overload for other types."""
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
        """Whether the network contains an address of the same family."""
        host = self.address.bits - self.length
        return address.bits == self.address.bits and address.number >> host == self.address.number >> host


def ip(text: str) -> Ip:
    """An address that Kubernetes' ip() accepts. Raises AddressError."""
    try:
        number, bits, zone = parse_address(text)
    except AddressError as error:
        reason = f"IP Address {quote(text)} parse error during conversion from string: {error.message}"
        raise AddressError(reason) from None
    if zone:
        raise AddressError(f"IP address {quote(text)} with zone value is not allowed")
    address = Ip(number, bits)
    if _mapped(address):
        raise AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _mapped(address: Ip) -> bool:
    return address.bits == 128 and address.number >> 32 == 0xFFFF


def cidr(text: str) -> Cidr:
    """A network that Kubernetes' cidr() accepts. Raises AddressError."""
    before, slash, length = text.rpartition("/")
    reason = ""
    if not slash:
        reason = "no '/'"
    else:
        try:
            number, bits, zone = parse_address(before)
        except AddressError as error:
            reason = error.message
        else:
            reason = _prefix_problem(bits, zone, length)
    if reason:
        raise AddressError(
            "network address parse error during conversion from string: "
            f"netip.ParsePrefix({quote(text)}): {reason}"
        )
    address = Ip(number, bits)
    if _mapped(address):
        raise AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Cidr(address, int(length))


def _prefix_problem(bits: int, zone: str, length: str) -> str:
    if zone:
        return "IPv6 zones cannot be present in a prefix"
    if not _LENGTH.fullmatch(length) or len(length) > 19 or int(length) > MAX_INT:
        return f"bad bits after slash: {quote(length)}"
    return "prefix length out of range" if int(length) > bits else ""
