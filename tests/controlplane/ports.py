"""Reserved ports: free ones, kept as long as a control plane lives, across restarts of its programs."""

import socket


class Ports:
    """Assigns loopback ports and keeps a bound socket on each.

    Because only one side listens and both set SO_REUSEADDR (Go always does), the program can listen on the
    port although we have bound it, while the kernel assigns it to nothing else, neither as a free port nor as
    the local end of a connection.
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
        """Releases all ports."""
        while self._sockets:
            self._sockets.pop().close()
