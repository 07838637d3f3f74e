"""What the webhook needs of the cluster to judge changes: policies, how API servers ask, and live objects.

All of it is optional: without the rights of manifests/changes there is nothing to judge.
"""

import asyncio
import hmac
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import quote

import orjson
from pydantic import ValidationError

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.definitionreport import DefinitionReport
from crdkeeper.api.meta import GROUP, VERSION
from crdkeeper.cluster.resources.changewebhook import COLLECTION, NAME, address_of, token_of
from crdkeeper.cluster.transport.client import ApiError, Client, NoCredentials, TooLarge, Unreachable
from crdkeeper.cluster.transport.connection import ConfigurationError, Connection
from crdkeeper.cluster.transport.watches import follow, listed
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.policy.reading import read_policy
from crdkeeper.core.policy.selection import guarding, guarding_digest, protecting
from crdkeeper.webhook.changes.worker import RawPage

_log = logging.getLogger(__name__)

_POLICIES: Final = f"/apis/{GROUP}/{VERSION}/{DefinitionPolicy.plural}"
_REPORTS: Final = f"/apis/{GROUP}/{VERSION}/{DefinitionReport.plural}"
_LOOK_SECONDS: Final = 10.0
"""Until another look for rights, or for a kind, that were missing."""
_FIRST_PAGE: Final = 50
_MOST_OBJECTS: Final = 500
_WANTED_BYTES: Final = 512 << 10
_MOST_BYTES: Final = 2 << 20
"""Of a page. An object has at most 1.5 MB in etcd."""
_FORBIDDEN: Final = "crdkeeper-webhook may not list them, see docs/changes.md"
_UNREPORTED: Final = "crdkeeper-webhook may not get DefinitionReports, see docs/changes.md"
_SHRINKAGE: Final = 5
_STARTING_SECONDS: Final = 30.0
"""How long policies and token stay that the API server says are gone: one that has just started knows neither
rights nor kinds, and that is when it needs the webhook to protect CRDs."""
_GROWTH: Final = 4
_DECISIVE: Final = ("selector", "groups", "protection", "changes")


class PolicySource(Protocol):
    """Where the policies come from."""

    token: str
    """With which API servers ask; empty if there is none."""
    address: WebhookAddress
    """Where they ask."""

    @property
    def content(self) -> bytes:
        """Those that judge changes or protect CRDs, as JSON; empty if there are none."""

    @property
    def judging(self) -> bool:
        """Whether one of them judges changes."""

    @property
    def protecting(self) -> bool:
        """Whether one of them protects CRDs."""

    @property
    def digest(self) -> str:
        """Identifies those that judge changes."""

    def admits(self, token: str) -> bool:
        """Whether a request with this token comes from an API server."""

    async def fetch(self, collection: str, token: str, seconds: float) -> RawPage:
        """A page of live objects."""

    async def report(self, name: str, seconds: float) -> RawPage:
        """The DefinitionReport of a CRD."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Follow the policies until cancelled."""

    async def close(self) -> None:
        """Release all resources."""


class ClusterPolicies:
    """Those of the cluster."""

    def __init__(self, connection: Connection) -> None:
        self.token = ""
        self.address = WebhookAddress()
        self._connection = connection
        self._client: Client | None = None
        self._policies: dict[str, DefinitionPolicy] = {}
        """Those that judge changes or protect CRDs."""
        self._written: dict[str, bytes] = {}
        """The same as JSON."""
        self._content: bytes | None = None
        self._digest: str | None = None
        """None after a change: thousands of policies come one after another."""
        self._limit = _FIRST_PAGE
        self._changed: Callable[[], None] = lambda: None

    @property
    def content(self) -> bytes:
        """Those that judge changes or protect CRDs, as JSON without what does not decide."""
        if self._content is None:
            self._content = b"[" + b",".join(self._written.values()) + b"]" if self._written else b""
        return self._content

    @property
    def judging(self) -> bool:
        """Whether one of them judges changes."""
        return bool(guarding(self._policies.values()))

    @property
    def protecting(self) -> bool:
        """Whether one of them protects CRDs."""
        return bool(protecting(self._policies.values()))

    @property
    def digest(self) -> str:
        """Identifies those that judge changes."""
        if self._digest is None:
            self._digest = guarding_digest(self._policies.values())
        return self._digest

    def admits(self, token: str) -> bool:
        """Whether it is the token in the ValidatingWebhookConfiguration."""
        return bool(self.token) and hmac.compare_digest(token.encode(), self.token.encode())

    async def run(self, changed: Callable[[], None]) -> None:
        """Follow policies and entry until cancelled; calls `changed` when the policies have changed."""
        self._changed = changed
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(_POLICIES, "", self._saw_policy, self._policies))
            group.create_task(
                self._follow(COLLECTION, f"metadata.name={NAME}", self._saw_entry, {NAME: None})
            )

    async def close(self) -> None:
        """Close the connections to the API server."""
        if self._client is not None:
            await self._client.__aexit__(None, None, None)

    async def fetch(self, collection: str, token: str, seconds: float) -> RawPage:
        """A page of the collection from a continue token on; no failure is raised."""
        limit = self._limit if token else _FIRST_PAGE
        try:
            async with asyncio.timeout(seconds):
                client = await self._connected()
                while True:
                    query = f"?limit={limit}" + (f"&continue={quote(token, safe='')}" if token else "")
                    try:
                        answer = await client.send("GET", collection + query, most=_MOST_BYTES)
                        break
                    except TooLarge:
                        if limit == 1:
                            return RawPage(b"", "an object is too large to be examined in time")
                        limit = max(1, limit // _SHRINKAGE)
        except TimeoutError:
            return RawPage(b"", "the API server did not list more in time")
        except (Unreachable, ConfigurationError, ApiError) as error:
            return RawPage(b"", f"the objects cannot be listed ({type(error).__name__})")
        if answer.code == 403:
            return RawPage(b"", _FORBIDDEN)
        if answer.code != 200:
            return RawPage(b"", f"the objects cannot be listed (HTTP {answer.code})")
        fitting = limit * _WANTED_BYTES // max(1, len(answer.content))
        self._limit = max(1, min(fitting, _GROWTH * limit, _MOST_OBJECTS))
        return RawPage(answer.content)

    async def report(self, name: str, seconds: float) -> RawPage:
        """The CRD's report; no failure is raised."""
        try:
            async with asyncio.timeout(seconds):
                client = await self._connected()
                answer = await client.send("GET", f"{_REPORTS}/{quote(name, safe='')}", most=_MOST_BYTES)
        except (TimeoutError, TooLarge, Unreachable, ConfigurationError, ApiError) as error:
            return RawPage(b"", f"the DefinitionReport cannot be read ({type(error).__name__})")
        if answer.code == 403:
            return RawPage(b"", _UNREPORTED)
        if answer.code not in (200, 404):
            return RawPage(b"", f"the DefinitionReport cannot be read (HTTP {answer.code})")
        return RawPage(answer.content if answer.code == 200 else b"")

    async def _connected(self) -> Client:
        if self._client is None:
            client = Client(self._connection)
            await client.__aenter__()
            self._client = client
        return self._client

    async def _follow(
        self, collection: str, fields: str, saw: Callable[[str, Any], None], known: dict[str, Any]
    ) -> None:
        """Keep a copy of a collection, whether or not it can be read at present."""
        told, gone_since, troubles = "", float("inf"), 0
        loop = asyncio.get_running_loop()

        def heard(trouble: str) -> None:
            nonlocal troubles
            troubles += bool(trouble)

        async def load() -> str:
            nonlocal gone_since
            version = await self._load(client, collection, fields, saw, known)
            gone_since = float("inf")
            return version

        while True:
            try:
                client = await self._connected()
                await follow(
                    client,
                    collection,
                    load,
                    partial(_seen, saw),
                    fields=fields,
                    heard=heard,
                    ends=lambda error: error.code in (401, 403, 404),
                )
            except (ApiError, NoCredentials, ConfigurationError) as error:
                if str(error) != told:
                    told = str(error)
                    _log.info("What changes of CRDs are judged by cannot be read: %s", told)
                if troubles > 1:
                    gone_since = float("inf")  # it was away in between, and starts anew
                troubles = 0
                if isinstance(error, ApiError) and error.code in (403, 404):
                    gone_since = min(gone_since, loop.time())
                    if loop.time() - gone_since >= _STARTING_SECONDS:
                        for name in list(known):
                            saw(name, None)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _load(
        self,
        client: Client,
        collection: str,
        fields: str,
        saw: Callable[[str, Any], None],
        known: dict[str, Any],
    ) -> str:
        query = f"?fieldSelector={quote(fields, safe='')}" if fields else ""
        items, version = listed(await client.request("GET", collection + query))
        names = {each["metadata"]["name"] for each in items}
        for name in known.keys() - names:
            saw(name, None)
        for each in items:
            saw(each["metadata"]["name"], each)
        return version

    def _saw_policy(self, name: str, found: Mapping[str, Any] | None) -> None:
        before = self._written.pop(name, None)
        self._policies.pop(name, None)
        try:
            policy = read_policy(found) if found is not None else None
        except ValidationError:
            _log.warning("DefinitionPolicy %s cannot be read and is ignored.", name)
            policy = None
        if policy is not None and (guarding([policy]) or protecting([policy])):
            self._policies[name] = policy
            spec = policy.spec.to_object()
            decisive = {each: spec[each] for each in _DECISIVE if each in spec}
            self._written[name] = orjson.dumps({"metadata": {"name": name}, "spec": decisive})
        self._digest = None
        if self._written.get(name) != before:
            self._content = None
            self._changed()

    def _saw_entry(self, name: str, found: Mapping[str, Any] | None) -> None:
        if name == NAME:
            self.token, self.address = token_of(found or {}), address_of(found or {})


async def _seen(saw: Callable[[str, Any], None], type_: str, found: Mapping[str, Any]) -> None:
    saw(found["metadata"]["name"], None if type_ == "DELETED" else found)
