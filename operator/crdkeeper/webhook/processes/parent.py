"""The parent: it holds the port, and keeps the keeper and the serving processes running.

It has loaded everything when it forks them, so they share its memory. It has no event loop and no threads:
forking is safe at any time, and there is little that could make it fail.

All serving processes accept from one socket. With one socket each (SO_REUSEPORT), the kernel would reset the
connections that wait for a process that is killed.
"""

import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import uvloop

from crdkeeper.listening import address_of, bound
from crdkeeper.webhook.changes.clusterpolicies import PolicySource
from crdkeeper.webhook.processes.board import Board
from crdkeeper.webhook.processes.channel import pair
from crdkeeper.webhook.processes.keeper import BROKEN, KeeperProcess
from crdkeeper.webhook.processes.orders import introduce
from crdkeeper.webhook.processes.restarts import Restarts
from crdkeeper.webhook.processes.serving import ServingProcess
from crdkeeper.webhook.processes.stalls import Stalls
from crdkeeper.webhook.rules.rulebook import RuleSource
from crdkeeper.webhook.server import SHUTDOWN_SECONDS, WebhookOptions

_log = logging.getLogger(__name__)

_TICK_SECONDS: Final = 1.0
_HANGING_TICKS: Final = 20
"""Sooner than kubelets restart all of the container for it."""
_KEEPER_SECONDS: Final = 10.0
"""How long the keeper may take to end."""
_SPARE_SECONDS: Final = 5.0
_SIGNALS: Final = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, BROKEN}

Logs = Callable[[str], None]
"""Called in a child with its name, which its log records show."""


@dataclass(slots=True)
class _Child:
    """One process, and those that were there before it."""

    name: str
    pid: int = 0
    orders: socket.socket | None = None
    restarts: Restarts = field(default_factory=Restarts)

    def forget(self) -> None:
        """It has ended."""
        self.pid = 0
        if self.orders is not None:
            self.orders.close()
            self.orders = None


class Parent:
    """Starts all processes, and starts those again that end."""

    def __init__(
        self,
        options: WebhookOptions,
        rules: RuleSource,
        policies: PolicySource | None,
        serving: int,
        logs: Logs,
    ) -> None:
        self._options, self._rules, self._policies = options, rules, policies
        self._keeper_row = serving
        self._board = Board(serving + 1)
        self._stalls = Stalls(serving + 1, _HANGING_TICKS)
        self._children = [_Child(f"server {row}") for row in range(serving)] + [_Child("keeper")]
        self._logs = logs
        self._pid = os.getpid()
        self._broken = False
        self._stopping = False

    def run(self) -> int:
        """Run until SIGTERM or SIGINT (0), or the keeper says that all must end (1).

        Raises OSError if the port cannot be used.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        with bound(self._options.host, self._options.port) as listener:
            _log.info("Serving %s by %d processes.", address_of(listener), self._keeper_row)
            gc.collect()
            gc.freeze()
            tick = time.monotonic()
            while not self._stopping:
                self._start_due(listener)
                self._heed(_TICK_SECONDS)
                if time.monotonic() >= tick:
                    tick = time.monotonic() + _TICK_SECONDS
                    self._replace_hanging()
        # The port is closed as soon as no process serves it any more.
        self._end()
        return 1 if self._broken else 0

    def _heed(self, seconds: float) -> None:
        """Wait for a signal, and do what it asks for."""
        due = [each.restarts.due - time.monotonic() for each in self._children if not each.pid]
        came = signal.sigtimedwait(_SIGNALS, max(0.0, min([seconds, *due])))
        if came is not None and came.si_signo == BROKEN:
            self._broken = self._stopping = True
        elif came is not None and came.si_signo != signal.SIGCHLD:
            self._stopping = True
        self._reap()

    def _start_due(self, listener: socket.socket) -> None:
        for row, child in enumerate(self._children):
            if not child.pid and child.restarts.due <= time.monotonic():
                self._start(row, listener)

    def _start(self, row: int, listener: socket.socket) -> None:
        child = self._children[row]
        ours, its = pair()
        self._board.clear(row)
        self._stalls.forget(row)
        pid = os.fork()
        if pid == 0:
            ours.close()  # else it would never see the parent's end
            self._become(row, its, listener)
        its.close()
        child.pid, child.orders = pid, ours
        child.restarts.started(time.monotonic())
        _log.info("Started %s: process %d.", child.name, pid)
        for serving in range(self._keeper_row) if row == self._keeper_row else [row]:
            self._introduce(serving)

    def _introduce(self, row: int) -> None:
        """Connect a serving process with the keeper, if both are there."""
        server, keeper = self._children[row].orders, self._children[self._keeper_row].orders
        if server is None or keeper is None:
            return
        one, other = pair()
        with one, other, suppress(OSError):  # one that is dead or hangs is replaced, and introduced again
            introduce(keeper, row, one)
            introduce(server, self._keeper_row, other)

    def _become(self, row: int, orders: socket.socket, listener: socket.socket) -> None:
        """Be that child; does not return."""
        status = 1
        try:
            for each in self._children:
                if each.orders is not None:
                    each.orders.close()  # else nobody would notice the parent's end
            name = self._children[row].name
            self._logs(name)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            work: Coroutine[Any, Any, None]
            if row == self._keeper_row:
                listener.close()
                keeper = KeeperProcess(self._options, self._rules, self._policies, self._board, row)
                work = keeper.run(orders, self._pid)
            else:
                serving = ServingProcess(self._options, self._board, row, self._keeper_row)
                work = serving.run(listener, orders)
            uvloop.run(work)
            status = 0
        except BaseException as error:
            _log.error("%s ends: %s", self._children[row].name, error, exc_info=error)
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for row, child in enumerate(self._children):
                if child.pid == pid:
                    self._has_ended(row, os.waitstatus_to_exitcode(status))

    def _has_ended(self, row: int, code: int) -> None:
        child = self._children[row]
        child.forget()
        self._board.clear(row)
        if self._stopping:
            return
        if row == self._keeper_row and code >= 0:
            # It could not begin: so it would be next time.
            self._broken = self._stopping = True
            return
        pause = child.restarts.ended(time.monotonic())
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        _log.error("%s %s; starting another one in %.1f s.", child.name, how, pause)

    def _replace_hanging(self) -> None:
        self._stalls.look(self._board.beats)
        for row in self._stalls.rows():
            child = self._children[row]
            if child.pid:
                _log.error("%s hangs; killing it.", child.name)
                os.kill(child.pid, signal.SIGKILL)
                self._stalls.forget(row)

    def _end(self) -> None:
        """Let those that serve finish, then the keeper."""
        _log.info("Stopping.")
        serving = self._children[: self._keeper_row]
        for each in self._children:
            if each.pid:
                os.kill(each.pid, signal.SIGTERM)
        self._await_end(serving, self._options.drain_seconds + SHUTDOWN_SECONDS + _SPARE_SECONDS)
        keeper = self._children[self._keeper_row]
        if keeper.orders is not None:
            keeper.orders.close()
        self._await_end([keeper], _KEEPER_SECONDS)

    def _await_end(self, children: list[_Child], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while any(each.pid for each in children):
            left = deadline - time.monotonic()
            if left <= 0:
                for each in children:
                    if each.pid:
                        os.kill(each.pid, signal.SIGKILL)
                deadline = float("inf")
            signal.sigtimedwait(_SIGNALS, min(max(left, 0.0), _TICK_SECONDS))
            self._reap()
