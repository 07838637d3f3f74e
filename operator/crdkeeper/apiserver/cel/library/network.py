"""The functions on IP addresses and networks (k8s.io/apiserver pkg/cel/library/ip.go and cidr.go)."""

from collections.abc import Callable
from typing import Final

from crdkeeper.apiserver.cel.values.network import Cidr, Ip, cidr, ip
from crdkeeper.apiserver.cel.values.overloads import Overload, Table
from crdkeeper.apiserver.cel.values.values import EvaluationError, no_overload
from crdkeeper.apiserver.golang.addresses import AddressError


def _ip(text: str) -> Ip:
    try:
        return ip(text)
    except AddressError as error:
        raise EvaluationError(error.message) from None


def _cidr(text: str) -> Cidr:
    try:
        return cidr(text)
    except AddressError as error:
        message = f"network address parse error during conversion from string: {error.message}"
        raise EvaluationError(message) from None


def _valid(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except AddressError:
        return False
    return True


def _in_v4(address: Ip, network: int, length: int) -> bool:
    return address.bits == 32 and address.number >> (32 - length) == network


def _in_v6(address: Ip, network: int, length: int) -> bool:
    return address.bits == 128 and address.number >> (128 - length) == network


def _is_unspecified(address: Ip) -> bool:
    return address.number == 0


def _is_loopback(address: Ip) -> bool:
    return _in_v4(address, 127, 8) or _in_v6(address, 1, 128)


def _is_multicast(address: Ip) -> bool:
    return _in_v4(address, 0xE, 4) or _in_v6(address, 0xFF, 8)


def _is_link_local_multicast(address: Ip) -> bool:
    return _in_v4(address, 0xE00000, 24) or (_in_v6(address, 0xFF, 8) and address.number >> 112 & 0xF == 2)


def _is_link_local_unicast(address: Ip) -> bool:
    return _in_v4(address, 0xA9FE, 16) or _in_v6(address, 0xFE80 >> 6, 10)


def _is_global_unicast(address: Ip) -> bool:
    return not (
        _is_unspecified(address)
        or (address.number == 0xFFFFFFFF and address.bits == 32)
        or _is_loopback(address)
        or _is_multicast(address)
        or _is_link_local_unicast(address)
    )


def _contains_text(network: Cidr, text: str) -> bool:
    try:
        return network.contains(ip(text))
    except AddressError:
        raise no_overload() from None


def _contains(outer: Cidr, inner: Cidr) -> bool:
    return outer.length <= inner.length and outer.contains(inner.address)


MEMBERS: Final[Table] = {
    "family": (Overload((Ip.type_name,), lambda address: 4 if address.bits == 32 else 6),),
    "isUnspecified": (Overload((Ip.type_name,), _is_unspecified),),
    "isLoopback": (Overload((Ip.type_name,), _is_loopback),),
    "isLinkLocalMulticast": (Overload((Ip.type_name,), _is_link_local_multicast),),
    "isLinkLocalUnicast": (Overload((Ip.type_name,), _is_link_local_unicast),),
    "isGlobalUnicast": (Overload((Ip.type_name,), _is_global_unicast),),
    "containsIP": (
        Overload((Cidr.type_name, "string"), _contains_text),
        Overload((Cidr.type_name, Ip.type_name), Cidr.contains),
    ),
    "containsCIDR": (
        Overload((Cidr.type_name, "string"), lambda network, text: _contains(network, _cidr(text))),
        Overload((Cidr.type_name, Cidr.type_name), _contains),
    ),
    "ip": (Overload((Cidr.type_name,), lambda network: network.address),),
    "prefixLength": (Overload((Cidr.type_name,), lambda network: network.length),),
    "masked": (Overload((Cidr.type_name,), Cidr.masked),),
}
GLOBALS: Final[Table] = {
    "ip": (Overload(("string",), _ip),),
    "isIP": (Overload(("string",), lambda text: _valid(ip, text)),),
    "ip.isCanonical": (Overload(("string",), lambda text: _ip(text).text() == text),),
    "cidr": (Overload(("string",), _cidr),),
    "isCIDR": (Overload(("string",), lambda text: _valid(cidr, text)),),
}
