"""What the parent tells its children: who is at the other end of a new channel."""

import asyncio
import socket
from collections.abc import Callable

_MOST_BYTES = 64


def introduce(end: socket.socket, row: int, channel: socket.socket) -> None:
    """Give a child a channel to the process in that row. Raises OSError if the child is gone or hangs."""
    socket.send_fds(end, [str(row).encode()], [channel.fileno()], socket.MSG_DONTWAIT)


def follow_orders(
    end: socket.socket, connect: Callable[[int, socket.socket], None], orphaned: Callable[[], None]
) -> None:
    """Call `connect` for each channel, and `orphaned` when the parent has ended."""
    loop = asyncio.get_running_loop()
    end.setblocking(False)

    def read() -> None:
        try:
            said, files, _, _ = socket.recv_fds(end, _MOST_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            said, files = b"", []
        if said and files:
            connect(int(said), socket.socket(fileno=files[0]))
        elif not said:
            loop.remove_reader(end)
            orphaned()

    loop.add_reader(end, read)
