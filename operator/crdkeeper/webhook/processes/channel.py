"""Messages between two processes: each arrives whole or not at all, even if its sender is killed."""

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import orjson

_log = logging.getLogger(__name__)

_HEAD_BYTES: Final = 16 << 10
"""Of a message without a file."""
_RETRY_SECONDS: Final = 0.05

Received = Callable[[dict[str, Any], bytes], None]
"""Called with each message, and what it carries."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Channel:
    """One end. What is large, or what a message carries, goes along as a file in memory, however large."""

    def __init__(self, end: socket.socket, received: Received, lost: Callable[[], None]) -> None:
        end.setblocking(False)
        self._end, self._received, self._lost = end, received, lost
        self._loop = asyncio.get_running_loop()
        self._going: deque[tuple[bytes, bytes]] = deque()
        self._blocked = self._closed = False
        self._loop.add_reader(end, self._read)

    @property
    def idle(self) -> bool:
        """Whether all messages are sent."""
        return not self._going

    def send(self, said: dict[str, Any], carried: bytes = b"") -> None:
        """Send it as soon as there is room; it is lost if the other end is closed before."""
        if not self._closed:
            self._going.append((orjson.dumps(said), carried))
            if not self._blocked:
                self._flush()

    def close(self) -> None:
        """Neither send nor receive any more."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._end)
            self._loop.remove_writer(self._end)
            self._going.clear()
            self._end.close()

    def _flush(self) -> None:
        self._blocked = False
        self._loop.remove_writer(self._end)
        while self._going and not self._closed:
            said, carried = self._going[0]
            try:
                send_with(self._end, said, carried)
            except BlockingIOError:
                self._blocked = True
                self._loop.add_writer(self._end, self._flush)
                return
            except OSError as error:
                if isinstance(error, ConnectionError):
                    self._lose()
                else:
                    # Too many files are on their way.
                    self._blocked = True
                    self._loop.call_later(_RETRY_SECONDS, self._flush)
                return
            self._going.popleft()

    def _read(self) -> None:
        try:
            head, files, _, _ = socket.recv_fds(self._end, _HEAD_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            self._lose()
            return
        if not head:
            self._lose()
            return
        if head.isdigit() and not files:
            # Without what it said, this process could serve old rules for ever. The next one hears all again.
            _log.error("Too few file descriptors to hear of another process; ending for a fresh start.")
            os._exit(1)
        said, carried = _content(head, files)
        self._received(orjson.loads(said), carried)

    def _lose(self) -> None:
        if not self._closed:
            self.close()
            self._lost()


def send_with(end: socket.socket, said: bytes, carried: bytes) -> None:
    """Send one message. Raises OSError."""
    if not carried and len(said) <= _HEAD_BYTES:
        end.send(said)
        return
    with os.fdopen(os.memfd_create("message"), "wb", buffering=0) as file:
        for each in (said, carried):
            rest = memoryview(each)
            while rest:
                rest = rest[file.write(rest) :]
        socket.send_fds(end, [b"%d" % len(said)], [file.fileno()])


def _content(head: bytes, files: list[int]) -> tuple[bytes, bytes]:
    if not files:
        return head, b""
    with os.fdopen(files[0], "rb", buffering=0) as file:
        file.seek(0)  # both processes have the same position
        length = int(head)
        return file.read(length), file.read()
