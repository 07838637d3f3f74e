"""Ports that stay ours: free ones, reserved for as long as a plane lives, across restarts of its programs."""

import socket


class Ports:
    """Hands out loopback ports and keeps a bound socket on each.

    As neither side of a pair listens twice and both set SO_REUSEADDR (Go always does), the program can
    listen on the port although we hold it, while the kernel gives it to nobody else, be it as a free
    port or as the local end of a connection.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        """A free port, reserved until `close`."""
        reservation = socket.socket()
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        self._sockets.append(reservation)
        port: int = reservation.getsockname()[1]
        return port

    def close(self) -> None:
        """Gives all ports back."""
        while self._sockets:
            self._sockets.pop().close()
