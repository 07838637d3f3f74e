"""Sockets of both families, on machines that have both, and on machines that do not."""

import errno
import socket
from typing import Any

import pytest

from crdkeeper.listening import address_of, listening

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")


def reached_at(listener: socket.socket, host: str) -> bool:
    try:
        with socket.create_connection((host, listener.getsockname()[1]), timeout=5):
            return True
    except OSError:
        return False


@needs_ipv6
@pytest.mark.parametrize(
    ("host", "at", "printed"),
    [
        ("", {"127.0.0.1": True, "::1": True}, "[::]"),
        ("::", {"127.0.0.1": True, "::1": True}, "[::]"),
        ("0.0.0.0", {"127.0.0.1": True, "::1": False}, "0.0.0.0"),
        ("127.0.0.1", {"127.0.0.1": True, "::1": False}, "127.0.0.1"),
        ("::1", {"127.0.0.1": False, "::1": True}, "[::1]"),
        ("localhost", {"127.0.0.1": True, "::1": False}, "127.0.0.1"),
    ],
)
def test_a_host_stands_for_these_addresses(host: str, at: dict[str, bool], printed: str) -> None:
    with listening(host, 0) as listener:
        assert {each: reached_at(listener, each) for each in at} == at
        assert address_of(listener) == f"{printed}:{listener.getsockname()[1]}"


class Lacking(socket.socket):
    """The sockets of a machine without IPv6."""

    code = errno.EAFNOSUPPORT

    def __init__(self, family: int = -1, *arguments: Any, **named: Any) -> None:
        if family == socket.AF_INET6 and self.code == errno.EAFNOSUPPORT:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        super().__init__(family, *arguments, **named)

    def bind(self, address: Any) -> None:
        if self.family == socket.AF_INET6:
            raise OSError(self.code, "no address of that family")
        super().bind(address)


@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
@pytest.mark.parametrize("host", ["", "::"])
def test_without_ipv6_it_listens_on_ipv4(monkeypatch: pytest.MonkeyPatch, host: str, code: int) -> None:
    monkeypatch.setattr(Lacking, "code", code)
    monkeypatch.setattr(socket, "socket", Lacking)
    with listening(host, 0) as listener:
        monkeypatch.undo()
        assert address_of(listener).startswith("0.0.0.0:")
        assert reached_at(listener, "127.0.0.1")


def test_a_port_that_is_taken_is_an_error() -> None:
    with listening("", 0) as listener, pytest.raises(OSError, match="in use"):
        listening("", listener.getsockname()[1])
