"""Sockets to listen on, for machines with IPv4, IPv6 or both: pods are called at either."""

import errno
import socket
from typing import Final

EVERYWHERE: Final = ("", "::")
"""Hosts that mean all addresses of both families, as in Go."""

_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


def listening(host: str, port: int, *, backlog: int = 128) -> socket.socket:
    """Return a socket that listens there; for a host of `EVERYWHERE` also on machines without IPv6.

    For a name with addresses in both families, the IPv4 address is used. Raises OSError.
    """
    if host in EVERYWHERE:
        try:
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True
            )
        except ValueError:
            host = "0.0.0.0"  # as in `create_server`: no socket can serve both families
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
            host = "0.0.0.0"
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return socket.create_server(address, family=family, backlog=backlog)


def address_of(listener: socket.socket) -> str:
    """The address it listens on, as HOST:PORT."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
