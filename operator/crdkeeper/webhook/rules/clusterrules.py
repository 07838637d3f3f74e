"""The conversions that are served: from the bundles that the operator stores in ConfigMaps.

They are self-contained and verified, so this process needs only one right: to read the ConfigMaps of its
namespace. What it has compiled remains in service while API server and operator are down; a bundle that is
damaged or deleted never removes one that serves.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from crdkeeper.apiserver.dnsnames import subdomain_errors
from crdkeeper.cluster.resources.versionconversions import BUNDLE_SELECTOR, bundle_of, bundles_path
from crdkeeper.cluster.transport.client import (
    METADATA_ONLY_LIST,
    ApiError,
    Client,
    NoCredentials,
    Unreachable,
    find,
)
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from crdkeeper.cluster.transport.namespaces import Home, look_home, until_uninstalled
from crdkeeper.cluster.transport.watches import REFUSED_SECONDS, follow
from crdkeeper.core.conversion.bundle import BadBundle, digest, unpacked
from crdkeeper.core.conversion.objects import Conversion, compile_conversion
from crdkeeper.webhook.rules.rulebook import Served

_log = logging.getLogger(__name__)

_LOOK_PAUSE = 1.0
"""Between two searches for unknown names, no matter who asks for which names."""
_LOOK_SECONDS = 2.0
"""How long a request waits for a search."""
_MOST_WAITING = 100


class ClusterRules:
    """Follows the bundles of one namespace."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self.conversions: dict[str, Served] = {}
        self.problems: dict[str, str] = {}
        self.blocking: set[str] = set()
        self._begun = False
        """Whether all bundles that existed at the start were compiled, or found not to be usable."""
        self._changed: Callable[[], None] = lambda: None
        self._connection = connection
        self._namespace = namespace
        self._client: Client | None = None
        self._ran = False
        self._heard = time.monotonic()
        self._trouble = "the API server has not responded yet"
        self._seen: dict[str, str] = {}
        """The resourceVersions of bundles by name."""
        self._looking: asyncio.Task[None] | None = None
        self._looked = 0.0
        self._waiting = 0
        self._at_home = False
        """Whether our namespace could be read."""
        self._locked_out = False
        """Whether credentials have been refused for so long that this does not indicate an uninstall."""

    async def run(self, loaded: Callable[[], None]) -> None:
        """Compile all bundles, call `loaded`, and again after each change, until cancelled.

        Refused credentials never take away rules that are served: without them objects cannot be read.

        Raises ConfigurationError if there are no credentials at startup, and otherwise what `follow` raises:
        for refused credentials only where there are no rules to serve.
        """
        if not self._ran:  # a keeper does this again after a failure
            self._ran, self._heard = True, time.monotonic()
        client = await self._connected()

        async def load() -> str:
            version = await self._load(client)
            if not self._begun:
                self._begun, self.blocking = True, set(self.problems)
            self._changed = loaded
            loaded()
            return version

        collection = bundles_path(self._namespace)
        while True:
            try:
                await follow(client, collection, load, self._saw, selector=BUNDLE_SELECTOR, heard=self._hear)
            except (ApiError, NoCredentials) as error:
                if not self.conversions:
                    raise
                if not self._locked_out:
                    self._locked_out = True
                    _log.error(
                        "Credentials have been refused for %.0f minutes (%s): changes to the rules are "
                        "missed. This process serves the rules that it has, and keeps trying.",
                        REFUSED_SECONDS / 60,
                        error,
                    )

    def unseen(self) -> tuple[float, str]:
        """See RuleSource: changes may have been missed since the API server last answered."""
        return (time.monotonic() - self._heard, self._trouble) if self._trouble else (0.0, "")

    def _hear(self, trouble: str) -> None:
        self._trouble = trouble
        if not trouble:
            self._heard = time.monotonic()
            self._locked_out = False

    async def look_again(self, name: str) -> None:
        """Search for new bundles: the watch may lag behind the API server that asks for this one.

        Anyone can ask for any name, so one search serves all, only one runs at a time, and then there is a
        pause.
        """
        if "." not in name or subdomain_errors(name) or self._waiting >= _MOST_WAITING:
            return
        now = time.monotonic()
        if self._looking is None:
            if now < self._looked + _LOOK_PAUSE:
                return
            self._looked = now
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(self._have_looked)
        self._waiting += 1
        try:
            await asyncio.wait({self._looking}, timeout=max(0.0, self._looked + _LOOK_SECONDS - now))
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """Close the connections to the API server."""
        if self._client is not None:
            await self._client.__aexit__(None, None, None)

    async def uninstalled(self) -> None:
        """Return only when our namespace is being deleted."""
        await until_uninstalled(self._look_home, permitted=self._at_home and not self._locked_out)
        _log.info("crdkeeper is being uninstalled.")

    async def _look_home(self) -> Home:
        return await look_home(await self._connected(), self._namespace)

    def _have_looked(self, _: asyncio.Task[None]) -> None:
        self._looking = None
        self._looked = time.monotonic()

    async def _look(self) -> None:
        try:
            client = await self._connected()
            path = f"{bundles_path(self._namespace)}?labelSelector={BUNDLE_SELECTOR}"
            listed = await client.request("GET", path, accept=METADATA_ONLY_LIST)
            for each in listed["items"]:
                name, version = each["metadata"]["name"], each["metadata"]["resourceVersion"]
                if self._seen.get(name) != version:
                    found = await find(client, bundles_path(self._namespace, name))
                    if found is not None:
                        await self._saw("ADDED", found)
        except (ApiError, Unreachable, ConfigurationError) as error:
            _log.warning("New rules cannot be watched: %s", error)

    async def _connected(self) -> Client:
        if self._client is None:
            client = Client(self._connection)
            await client.__aenter__()
            self._client = client
        return self._client

    async def _load(self, client: Client) -> str:
        listed = await client.request(
            "GET", f"{bundles_path(self._namespace)}?labelSelector={BUNDLE_SELECTOR}"
        )
        names = {each["metadata"]["name"] for each in listed["items"]}
        for name in self._seen.keys() - names:
            self._lost(name)
        for each in listed["items"]:
            await self._saw("ADDED", each)
        if not self._at_home:
            self._at_home = await look_home(client, self._namespace) is Home.STANDS
        version: str = listed["metadata"]["resourceVersion"]
        return version

    def _lost(self, name: str) -> None:
        del self._seen[name]
        self._solved(name)
        if name in self.conversions:
            _log.warning("%s: its rules were deleted; this process serves them until it ends.", name)

    def _solved(self, name: str) -> None:
        self.problems.pop(name, None)
        self.blocking.discard(name)

    async def _saw(self, type_: str, found: Mapping[str, Any]) -> None:
        name = found["metadata"]["name"]
        if type_ == "DELETED":
            if name in self._seen:
                self._lost(name)
            return
        self._seen[name] = found["metadata"]["resourceVersion"]
        content = bundle_of(found)
        known = self.conversions.get(name)
        if content is not None and known is not None and known.digest == digest(content):
            self._solved(name)
            return
        try:
            served = await asyncio.to_thread(compiled, content)
        except BadBundle as error:
            problem = str(error)
        except Exception as error:
            # Whatever one bundle contains, the others serve.
            _log.exception("%s: its rules cannot be compiled", name)
            problem = f"the rules cannot be compiled ({type(error).__name__})"
        else:
            problem = ""
        if problem:
            kept = " The previous rules are still served." if known is not None else ""
            _log.error("%s: %s.%s", name, problem, kept)
            self.problems[name] = problem
            return
        self.conversions[name] = served
        self._changed()
        self._solved(name)
        _log.info("Converting %s between %s.", name, ", ".join(served.conversion.versions))


def compiled(content: bytes | None) -> Served:
    """The conversion of a bundle. Raises BadBundle."""
    if content is None:
        raise BadBundle("the ConfigMap does not contain a bundle")
    made = compile_conversion(*unpacked(content))
    if not isinstance(made, Conversion):
        raise BadBundle("; ".join(map(str, made)))
    return Served(made, digest(content), content)
