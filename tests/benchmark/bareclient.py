"""The leanest client that we can write: the API server's throughput when requests cost next to nothing.

A separate process that lists the objects, prepares all requests, and only then measures: blocks of patches
over keep-alive TLS connections, driven by epoll, without a framework and without parsing beyond the status
code. With several numbers for --at-once, the blocks alternate between them. With --by-page, it does what
Cluster API's migrator does, without its limit of 100 requests per second: it lists a page, and sends one
patch after the other. Prints JSON.
"""

import argparse
import json
import os
import selectors
import socket
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from crdkeeper.api.meta import FIELD_MANAGER
from crdkeeper.cluster.transport.client import MERGE_PATCH, METADATA_ONLY, METADATA_ONLY_LIST
from tests.benchmark.meter import Meter, Usage
from tests.benchmark.server import Server

_BLOCK = 250
_FAILURES = 5
_PAUSE = 0.5


class Channel:
    """One keep-alive connection with one request in flight."""

    def __init__(self, server: Server) -> None:
        plain = socket.create_connection((server.host, server.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = server.context.wrap_socket(plain, server_hostname=server.host)
        self.socket.setblocking(False)
        self._request = self._answer = b""
        self._failures = 0

    def send(self, request: bytes) -> None:
        """Sends a request. It is small, and the previous one was answered: the socket has room for it."""
        self._request, self._failures = request, 0
        self._send()

    def _send(self) -> None:
        self._answer = b""
        self.socket.send(self._request)

    def receive(self) -> bool:
        """Reads available data; True once the object is written. Retries while the server is busy.

        Raises RuntimeError if the server refuses.
        """
        while True:
            try:
                chunk = self.socket.recv(65536)
            except ssl.SSLWantReadError:
                return False
            if not chunk:
                raise RuntimeError("the API server closed a connection")
            self._answer += chunk
            if self._complete():
                return self._written()

    def _written(self) -> bool:
        code = int(self._answer[9:12])
        # A request that timed out may have been executed, and finds the object changed the next time.
        if code == 200 or (code == 409 and self._failures):
            return True
        self._failures += 1
        if (code != 429 and code < 500) or self._failures > _FAILURES:
            raise RuntimeError(f"the API server refused: {self._answer.decode(errors='replace')}")
        time.sleep(_PAUSE)
        self._send()
        return False

    def _complete(self) -> bool:
        head = self._answer.find(b"\r\n\r\n")
        if head < 0:
            return False
        length = self._answer.find(b"Content-Length: ", 0, head)
        if length < 0:  # in chunks
            return self._answer.endswith(b"\r\n0\r\n\r\n")
        expected = int(self._answer[length + 16 : self._answer.find(b"\r\n", length)])
        return len(self._answer) >= head + 4 + expected


def requests(server: Server, group: str, version: str, plural: str) -> Iterator[bytes]:
    """The patches of all objects, as bytes; a page of objects is listed when its first patch is due."""
    for item in server.list(f"/apis/{group}/{version}/{plural}", accept=METADATA_ONLY_LIST):
        metadata = item["metadata"]
        path = f"/apis/{group}/{version}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"
        body = json.dumps({"metadata": {"resourceVersion": metadata["resourceVersion"]}})
        yield (
            f"PATCH {path}?fieldManager={FIELD_MANAGER} HTTP/1.1\r\n"
            f"Host: {server.host}:{server.port}\r\n"
            f"Authorization: {server.authorization}\r\n"
            f"Accept: {METADATA_ONLY}\r\n"
            f"Content-Type: {MERGE_PATCH}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
            f"{body}".encode()
        )


def patch(channels: Sequence[Channel], block: Sequence[bytes]) -> None:
    """Sends all requests of a block, one per connection at a time."""
    left, in_flight = iter(block), 0
    with selectors.EpollSelector() as selector:
        for channel, request in zip(channels, left, strict=False):
            selector.register(channel.socket, selectors.EVENT_READ, channel)
            channel.send(request)
            in_flight += 1
        while in_flight:
            for key, _ in selector.select():
                channel = key.data
                if not channel.receive():
                    continue
                request = next(left, b"")
                if request:
                    channel.send(request)
                else:
                    in_flight -= 1


def measure(server: Server, all_requests: Sequence[bytes], at_once: Sequence[int], meter: Meter) -> Any:
    """Sends all of them; returns what each number of connections achieved and used."""
    channels = [Channel(server) for _ in range(max(at_once))]
    block = _BLOCK if len(at_once) > 1 else len(all_requests)
    done = dict.fromkeys(at_once, 0)
    used: dict[int, Usage] = {}
    for turn, start in enumerate(range(0, len(all_requests), block)):
        number = at_once[turn % len(at_once)]
        some = all_requests[start : start + block]
        before = meter.read()
        patch(channels[:number], some)
        usage = before.until(meter.read())
        done[number] += len(some)
        used[number] = used[number].plus(usage) if number in used else usage
    return [
        {"atOnce": number, "objects": done[number], "usage": usage.to_object()}
        for number, usage in used.items()
    ]


def measure_by_page(server: Server, patches: Iterator[bytes], meter: Meter) -> Any:
    """Sends one after the other, with the time for listing; returns the same as `measure`."""
    channels, done, before = [Channel(server)], 0, meter.read()
    for each in patches:
        patch(channels, [each])
        done += 1
    return [{"atOnce": 1, "objects": done, "usage": before.until(meter.read()).to_object()}]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark.bareclient", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--resource", nargs=3, required=True, metavar=("GROUP", "VERSION", "PLURAL"))
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--at-once", type=int, nargs="+")
    how.add_argument("--by-page", action="store_true")
    parser.add_argument("--meter", nargs="*", default=[], metavar="NAME=PID", help="also measure these")
    options = parser.parse_args()
    pids = {name: int(pid) for name, _, pid in (each.partition("=") for each in options.meter)}
    server = Server(options.kubeconfig)
    meter = Meter({**pids, "client": os.getpid()})
    patches = requests(server, *options.resource)
    if options.by_page:
        done = measure_by_page(server, patches, meter)
    else:
        done = measure(server, list(patches), options.at_once, meter)
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    main()
