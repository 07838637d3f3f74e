"""An API server on the loopback interface with a test's answers, including watches that are cut off."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = Callable[[BaseHTTPRequestHandler, threading.Event], None]
"""Writes an answer; the event is set when the server closes."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass(slots=True)
class ApiServer:
    """Answers each request with the next of `answers`, then always with the last one."""

    answers: list[Answer]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        address = urlsplit(handler.path)
        content = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        self.requests.append(
            Request(
                handler.command,
                address.path,
                query,
                dict(handler.headers),
                json.loads(content) if content else None,
            )
        )
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer(handler, self.closing)

    @property
    def watched_from(self) -> list[str | None]:
        """The resourceVersion of each watch, and None for each list, in order."""
        return [each.query.get("resourceVersion") for each in self.requests]


@contextmanager
def serving(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[ApiServer]:
    """A server for the duration of the block."""
    api_server = ApiServer(list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            api_server.handle(self)

        def do_POST(self) -> None:
            api_server.handle(self)

        def do_PUT(self) -> None:
            api_server.handle(self)

        def do_PATCH(self) -> None:
            api_server.handle(self)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        api_server.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield api_server
        finally:
            api_server.closing.set()
            server.shutdown()
            thread.join()


def answer(body: Any, code: int = 200, **headers: str) -> Answer:
    """A body of JSON."""

    def write(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
        content = json.dumps(body).encode()
        handler.send_response(code)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return write


def refusal(code: int, message: str = "", **headers: str) -> Answer:
    """A metav1.Status."""
    return answer({"kind": "Status", "code": code, "message": message}, code, **headers)


def listing(*items: Mapping[str, Any], version: str = "100") -> Answer:
    """A list of that resourceVersion."""
    return answer({"metadata": {"resourceVersion": version}, "items": list(items)})


def event(type_: str, body: Mapping[str, Any]) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": type_, "object": body}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    """How far the watch has come."""
    return event("BOOKMARK", {"metadata": {"resourceVersion": version}})


def watch(*lines: bytes, stays: bool = False, breaks_off: bool = False) -> Answer:
    """A watch that says that; then it ends, stays open in silence, or breaks off."""

    def write(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for line in lines:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        if stays:
            closing.wait()
        if stays or breaks_off:
            handler.close_connection = True
        else:
            handler.wfile.write(b"0\r\n\r\n")

    return write


def hang(_: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    """No answer at all."""
    closing.wait()


def hang_up(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
    """The connection closed without an answer."""
    handler.close_connection = True
