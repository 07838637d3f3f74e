"""The cluster's address and our identity: kubeconfig, exec plugins or a pod's ServiceAccount.

`kubernetes.aio.config` reads them all; this turns its result into an aiohttp session, and into what Kopf
needs for its own.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping, MutableSet, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakSet

import aiohttp
import kopf
import yaml
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import Configuration
from yarl import URL

from crdkeeper.cluster.transport.connector import InStepConnector
from crdkeeper.cluster.transport.fence import Fence
from crdkeeper.cluster.transport.http1 import Http1Pool
from crdkeeper.cluster.transport.kubeconfig import ContextRead, read_context, set_proxy
from crdkeeper.cluster.transport.shallow import ShallowResponse
from crdkeeper.cluster.transport.tls import ClientContext, verifying
from crdkeeper.core.kubeconfig.context import has_content
from crdkeeper.core.kubeconfig.error import MALFORMED, KubeconfigError

CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 75.0
"""Longer than the API server's own --request-timeout, so that its answer, not our limit, ends a request."""


_DEFAULT_KUBECONFIG = Path("~/.kube/config").expanduser()
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ConfigurationError(Exception):
    """Neither a usable kubeconfig nor a pod's ServiceAccount was found."""


@dataclass(frozen=True, kw_only=True)
class _Login(kopf.AiohttpSession):
    """Makes Kopf use our trust settings and proxy instead of its own."""

    # Kopf compares logins to know which ones were refused.
    aiohttp_session: aiohttp.ClientSession = field(compare=False)
    credentials: tuple[str | None, bytes] = field(repr=False)


@dataclass(slots=True)
class Connection:
    """One cluster and one identity. `context` and `kubeconfig` are like kubectl's flags."""

    kubeconfig: Path | None = None
    context: str | None = None
    """Once loaded, the one that is used: what others make the current one meanwhile does not count."""
    namespace: str = field(default="default", init=False)
    """As for kubectl: that of the context, or in a pod that of its ServiceAccount. Known once loaded."""
    renewals: int = field(default=0, init=False)
    """How often the credentials were read again, or could not be."""
    _failure: str = field(default="", init=False)
    """Why the last time they could not."""
    _current: ContextRead = field(default_factory=lambda: ContextRead(None, "", Configuration()), init=False)
    _loaded: bool = field(default=False, init=False)
    _certificate: bytes = field(default=b"", init=False, repr=False)
    """The client certificate with its key: files may be renewed in their place."""
    _contexts: WeakSet[ClientContext] = field(default_factory=WeakSet, init=False)
    """Those of all connections that use it."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def load(self) -> None:
        """Read the configuration, unless that was done before. Raises ConfigurationError."""
        async with self._lock:
            if not self._loaded:
                await self._read()

    async def renew(self, renewals: int) -> None:
        """Read the configuration again: the credentials may have been renewed.

        Whoever was refused says how many `renewals` there were when he sent: if there was another one since,
        its result counts. Raises ConfigurationError, also if the configuration leads elsewhere now; then all
        stays as it was.
        """
        async with self._lock:
            if renewals == self.renewals:
                try:
                    await self._read()
                    self._failure = ""
                except ConfigurationError as error:
                    self._failure = str(error)
                self.renewals += 1
            if self._failure:
                raise ConfigurationError(self._failure)

    async def _read(self) -> None:
        try:
            read = await self._context()
            changed = self._current.moved(read) if self._loaded else None
            if not changed:
                self._take_certificate(read.configuration)
        except KubeconfigError as error:
            raise ConfigurationError(str(error)) from error
        except (LookupError, AttributeError) as error:
            raise ConfigurationError(MALFORMED) from error
        except (
            kubernetes_config.ConfigException,
            OSError,
            ValueError,
            TypeError,
            yaml.YAMLError,
        ) as error:
            why = " ".join(str(error).split()).rstrip(".")
            raise ConfigurationError(
                f"No cluster configured: {why}. Set KUBECONFIG or --kubeconfig, or run in a pod."
            ) from error
        if changed:
            raise ConfigurationError(
                f"The kubeconfig now leads elsewhere: the {changed} of the context {read.name!r} has "
                "changed. Restart to use it."
            )
        if not self._loaded:
            self._loaded, self.context, self.namespace = True, read.name, read.namespace or "default"
        self._current = read

    def _take_certificate(self, loaded: Configuration) -> None:
        """Have new connections use the client certificate, if it is another one.

        Raises OSError if it cannot be read, or if its key is another one's: then connections use the former.
        """
        files = [each for each in (loaded.cert_file, loaded.key_file) if each]
        content = b"".join(Path(each).read_bytes() for each in files)
        if loaded.cert_file and content != self._certificate:
            # Another context: one that has had a key of another kind may go on to use that.
            renewed = _tls(loaded, certified=True)
            for each in self._contexts:
                each.renewed = renewed
            self._certificate = content

    async def _context(self) -> ContextRead:
        if not self._in_cluster():
            return await read_context(self._files(), self.context)
        loaded = Configuration()
        kubernetes_config.load_incluster_config(client_configuration=loaded)
        set_proxy(loaded)
        return ContextRead(None, _pod_namespace(), loaded)

    def _files(self) -> str:
        """The kubeconfig; the environment variable may list several paths, of which one must have content.

        Raises OSError, and ValueError if none has.
        """
        files = str(self.kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT_KUBECONFIG)
        listed = [each for each in files.split(os.pathsep) if each]
        found = [each for each in listed if Path(each).exists()]
        if not found:
            raise FileNotFoundError(f"there is no {files}")
        if all(_is_empty(Path(each)) for each in found):
            raise ValueError(f"there is nothing in {files}")
        # The library passes over the missing ones. Some may be there for it alone, as it expands a tilde.
        return os.pathsep.join(each for each in listed if not _is_empty(Path(each)))

    def _in_cluster(self) -> bool:
        chosen = self.kubeconfig or self.context or os.environ.get("KUBECONFIG")
        return not chosen and "KUBERNETES_SERVICE_HOST" in os.environ

    @property
    def _configuration(self) -> Configuration:
        return self._current.configuration

    @property
    def impersonation(self) -> tuple[tuple[str, str], ...]:
        """The headers of requests that are made in the name of another user."""
        return self._current.impersonation

    @property
    def certified(self) -> bool:
        """Whether there is a client certificate: connections keep the one that they were made with."""
        return bool(self._certificate)

    @property
    def host(self) -> str:
        """The API server's URL without a trailing slash."""
        return str(self._configuration.host).rstrip("/")

    async def authorization(self) -> str | None:
        """The Authorization header, from a token that is read again when its file is rotated.

        Raises ConfigurationError if that cannot be read.
        """
        try:
            token = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        except (kubernetes_config.ConfigException, OSError, ValueError) as error:
            raise ConfigurationError(f"The token cannot be read: {error}") from error
        if not token:
            return None
        return f"Bearer {token.split(' ', 1)[-1].strip()}"

    def session(
        self,
        maximum: int = 0,
        headers: Mapping[str, str] | None = None,
        middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
        fence: Fence | None = None,
        *,
        anonymous: bool = False,
        response_class: type[aiohttp.ClientResponse] = aiohttp.ClientResponse,
    ) -> aiohttp.ClientSession:
        """An aiohttp session with the cluster's TLS settings and at most `maximum` connections (0: no limit).

        Its requests have these headers, pass these middlewares and this fence, and raise
        ClientConnectionError on redirects. `anonymous`: without our client certificate, which for API servers
        counts before any token, and in nobody else's name.
        """
        connector = InStepConnector(
            fence, limit=maximum, ssl=self._tls(anonymous=anonymous), ttl_dns_cache=60, keepalive_timeout=60
        )
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
        return aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=self._configuration.proxy,
            headers=[*(() if anonymous else self.impersonation), *(headers or {}).items()],
            middlewares=(_refuse_redirects, _name_no_proxy, *middlewares),
            response_class=response_class,
        )

    def http1_pool(self, fence: Fence | None = None) -> Http1Pool | None:
        """The lean client for the same server, whose requests pass the fence; None behind a proxy."""
        url, loaded = URL(self.host), self._configuration
        if loaded.proxy or url.host is None or url.port is None or url.path.strip("/"):
            return None
        encrypted = url.scheme == "https"
        return Http1Pool(
            url.host,
            url.port,
            self._tls() if encrypted else None,
            url.host if encrypted else None,
            connect_seconds=CONNECT_SECONDS,
            request_seconds=REQUEST_SECONDS,
            fence=fence,
        )

    def _tls(self, *, anonymous: bool = False) -> ssl.SSLContext:
        context = _tls(self._configuration, certified=not anonymous)
        if not anonymous:
            self._contexts.add(context)
        return context

    async def kopf_login(self, senders: MutableSet[asyncio.Task[Any]] | None = None) -> kopf.AiohttpSession:
        """The same cluster and identity for Kopf, which logs in again whenever it is refused.

        Each task that sends a request is added to `senders`.
        """
        await self.renew(self.renewals)
        header = await self.authorization()
        headers = {"Authorization": header} if header else None
        noting = [] if senders is None else [_noting(senders)]
        return _Login(
            server=self.host,
            aiohttp_session=self.session(headers=headers, middlewares=noting, response_class=ShallowResponse),
            credentials=(header, self._certificate),
        )


def _tls(loaded: Configuration, *, certified: bool) -> ClientContext:
    """The context of connections, with the client certificate, if there is one and it is to be shown."""
    context = verifying(
        ca_file=loaded.ssl_ca_cert or None,
        ca_data=loaded.ca_cert_data or None,
        server_name=loaded.tls_server_name,
    )
    if loaded.cert_file and certified:
        context.load_cert_chain(loaded.cert_file, keyfile=loaded.key_file)
    if not loaded.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _is_empty(path: Path) -> bool:
    # What is no file, such as a pipe, can be read only once.
    return path.is_file() and not has_content(path.read_bytes())


def _pod_namespace() -> str:
    # Missing where a token is mounted by hand, and hardly ever needed.
    with suppress(OSError):
        return _POD_NAMESPACE.read_text(encoding="utf-8").strip()
    return ""


def refuse_redirect(code: int, location: str) -> None:
    """The API server has no reason to redirect us, and what we send is for nobody else.

    Raises ClientConnectionError.
    """
    if 300 <= code < 400:
        where = f" to {location[:200]!r}" if location else ""
        raise aiohttp.ClientConnectionError(f"redirects are not followed: {code}{where}")


def _noting(senders: MutableSet[asyncio.Task[Any]]) -> aiohttp.ClientMiddlewareType:
    async def note(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if (sender := asyncio.current_task()) is not None:
            senders.add(sender)
        return await handler(request)

    return note


async def _refuse_redirects(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    response = await handler(request)
    try:
        refuse_redirect(response.status, response.headers.get("Location", ""))
    except aiohttp.ClientConnectionError:
        response.close()
        raise
    return response


async def _name_no_proxy(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientHttpProxyError as error:
        # Its text has the URL of the proxy, and that the password.
        raise aiohttp.ClientConnectionError(f"the proxy responds with status {error.status}") from None
