"""A web server on the loopback interface with the answers of a test, and a client for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml
from aiohttp import web

from crdkeeper.cluster.transport.client import Client
from crdkeeper.cluster.transport.connection import Connection

Handler = Callable[[web.Request], Awaitable[web.Response]]


@dataclass(slots=True)
class LocalServer:
    """Answers each request with the next of `answers`, then always with the last one."""

    answers: list[Handler]
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    url: str = ""
    connections: set[int] = field(default_factory=set)
    """The clients' ports."""

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        if request.transport is not None:
            self.connections.add(request.transport.get_extra_info("peername")[1])
        body = await request.read()
        self.bodies.append(orjson.loads(body) if body else None)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)

    @property
    def seen(self) -> list[tuple[str, str]]:
        """Method and address of each request."""
        return [(each.method, each.path_qs) for each in self.requests]


def json(body: Any, code: int = 200, **headers: str) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(
            status=code, body=orjson.dumps(body), content_type="application/json", headers=headers
        )

    return answer


def failure(code: int, reason: str = "", message: str = "", headers: Any = None, **more: Any) -> Handler:
    """A metav1.Status."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, **more}
    return json(body, code, **(headers or {}))


def page(text: str, code: int) -> Handler:
    """The answer of a proxy or a load balancer."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=code, text=text, content_type="text/html")

    return answer


async def hang_up(request: web.Request) -> web.Response:
    """Close the connection without an answer."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def hang(_: web.Request) -> web.Response:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


def silent(end: asyncio.Event) -> Handler:
    """Do not answer until the end."""

    async def answer(_: web.Request) -> web.Response:
        await end.wait()
        return web.Response()

    return answer


@asynccontextmanager
async def serving(*answers: Handler) -> AsyncIterator[LocalServer]:
    server = LocalServer(list(answers))
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def kubeconfig(
    directory: Path, url: str, token: str = "first", user: Mapping[str, Any] | None = None
) -> Path:
    """A kubeconfig for that address, as `kubectl config view` would show it."""
    path = directory / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": user or {"token": token}}],
            }
        )
    )
    return path


@asynccontextmanager
async def client_of(directory: Path, *answers: Handler) -> AsyncIterator[tuple[LocalServer, Client]]:
    """A server with these answers, and a client of it."""
    async with (
        serving(*answers) as server,
        Client(Connection(kubeconfig(directory, server.url))) as client,
    ):
        yield server, client
