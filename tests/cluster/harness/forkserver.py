"""The server of `preloaded`: it has imported all of crdkeeper, and each request is run by a fork of it.

It is started as a program of its own, which has no threads, and ends with the tests. A request is a message
on its socket, with a pipe for the exit status and the three standard streams; the answer is the process id.
"""

import gc
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
from importlib import import_module
from typing import Any, Final

from tests.controlplane.launch import die_with

_MOST_BYTES: Final = 1 << 20
"""Of a request: an environment and a command line."""
_STREAMS: Final = 3


def main() -> None:
    """Serves requests until the tests have ended. A child returns from here when its command has ended."""
    die_with(int(sys.argv[2]))
    connection = socket.socket(fileno=int(sys.argv[1]))
    _preload()
    request = _Server(connection).serve()
    if request is not None:
        _run(request)


class _Server:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._statuses: dict[int, int] = {}
        """By process id, the pipe for its exit status."""
        self._ended, ended = socket.socketpair()
        self._written = ended
        for each in (self._ended, self._written):
            each.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(ended.fileno())

    def serve(self) -> dict[str, Any] | None:
        """The request, in the process that is to fulfil it; None once nobody can ask any more."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._ended:
                        self._reap()
                        continue
                    text, received, _, _ = socket.recv_fds(self._connection, _MOST_BYTES, _STREAMS + 1)
                    if not text:
                        return None
                    child = self._fork(received)
                    if child:
                        return dict(json.loads(text))

    def _fork(self, received: list[int]) -> bool:
        """Whether this is the child, with its streams in place."""
        status, *streams = received
        child = os.fork()
        if child:
            self._statuses[child] = status
            for each in streams:
                os.close(each)
            self._connection.send(str(child).encode())
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for ours in (self._connection, self._ended, self._written):
            ours.close()
        for number, each in enumerate(streams):
            os.dup2(each, number)
        for each in (*streams, status, *self._statuses.values()):
            os.close(each)
        return True

    def _reap(self) -> None:
        self._ended.recv(_MOST_BYTES)
        for child, status in list(self._statuses.items()):
            ended, code = os.waitpid(child, os.WNOHANG)
            if ended:
                del self._statuses[child]
                os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
                os.close(status)


def _preload() -> None:
    from crdkeeper.cli.unusedclients import leave_out_unused_clients

    leave_out_unused_clients()
    import crdkeeper

    for each in pkgutil.walk_packages(crdkeeper.__path__, "crdkeeper."):
        if not each.name.endswith(".__main__"):
            import_module(each.name)
    # Pages that the collector does not touch stay shared.
    gc.collect()
    gc.freeze()


def _run(request: dict[str, Any]) -> None:
    """Becomes `python -m crdkeeper ARGUMENTS`, as an interpreter does when it starts."""
    die_with(request["server"])
    if request["session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    encoding, errors = "utf-8", "surrogateescape"  # as where no language is set
    sys.stdin = os.fdopen(0, encoding=encoding, errors=errors, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, errors=errors, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False)
    sys.argv = ["crdkeeper", *request["arguments"]]
    runpy.run_module("crdkeeper", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
