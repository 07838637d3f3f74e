"""Sockets to listen on, for machines with IPv4, IPv6 or both: pods are called at either."""

import errno
import socket
from typing import Any, Final

EVERYWHERE: Final = ("", "::")
"""Hosts that mean all addresses of both families, as in Go."""

_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


def listening(host: str, port: int, *, backlog: int = 128) -> socket.socket:
    """Return a socket that listens there, see `bound`. Raises OSError."""
    made = bound(host, port)
    try:
        made.listen(backlog)
    except OSError:
        made.close()
        raise
    return made


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that has this address; for a host of `EVERYWHERE` also on machines without IPv6.

    For a name with addresses in both families, the IPv4 address is used. Raises OSError.
    """
    if host in EVERYWHERE:
        if socket.has_dualstack_ipv6():
            try:
                return _bound(socket.AF_INET6, ("::", port))
            except OSError as error:
                if error.errno not in _NO_IPV6:
                    raise
        host = "0.0.0.0"
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return _bound(family, address)


def _bound(family: int, address: Any) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # As `socket.create_server`: an address of IPv6 is one of IPv6 only, except for all addresses.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def address_of(listener: socket.socket) -> str:
    """The address it listens on, as HOST:PORT."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
