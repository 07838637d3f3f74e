"""What remains when a VersionConversion is deleted: a CRD that our webhook converts, and a bundle of rules.

Both remain as long as they are needed to read what is stored, no matter who deleted the VersionConversion or
how. Then the CRD's strategy becomes None again, and the bundle is deleted. The CRD and the bundle alone
determine the next step, so a deletion that nobody watched is handled like any other.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from crdkeeper.apiserver.definitions.facts import definition_facts
from crdkeeper.cluster.probes.looking import has_objects
from crdkeeper.cluster.resources.definitions import get_definition_object
from crdkeeper.cluster.resources.events import send_definition_event
from crdkeeper.cluster.resources.versionconversions import (
    FIELD_MANAGER,
    delete_bundle,
    release_conversion,
    set_conversion,
)
from crdkeeper.cluster.transport.client import ApiError, Client
from crdkeeper.core.conversion.retirement import still_needed
from crdkeeper.core.conversion.target import ConversionOwner, WebhookAddress, configured_by, holder, trusts

_log = logging.getLogger(__name__)

REASON = "DeletedInUse"
_SOON = 2.0
_WAITING = 30.0
_FOLLOWED = 10.0
"""How long API servers may take to see that the CRD is released, before its rules are removed."""


class Leftovers:
    """Manages CRDs whose VersionConversion is gone."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        address: WebhookAddress,
        *,
        identity: str,
        bundle: Callable[[], str | None],
    ) -> None:
        """`bundle` returns the certificates by which to trust the webhook, as PEM."""
        self._client = client
        self._namespace = namespace
        self._address = address
        self._identity = identity
        self._bundle = bundle
        self._reported: dict[str, str] = {}
        """Why each is needed; empty until its CRD, which is being deleted, is gone."""
        self._released: dict[str, float] = {}

    def __contains__(self, name: object) -> bool:
        """Whether that CRD still has what its VersionConversion left."""
        return name in self._reported

    def is_needed(self, name: str) -> bool:
        """Whether a person has to do something before it can be removed."""
        return bool(self._reported.get(name))

    def forget(self, name: str) -> None:
        """The CRD has a VersionConversion again."""
        self._reported.pop(name, None)
        self._released.pop(name, None)

    async def look_after(self, name: str, now: float) -> float | None:
        """Take the next step for a CRD without VersionConversion. Returns the seconds until the one after.

        `now` is monotonic time. Raises ApiError or Unreachable.
        """
        crd = await get_definition_object(self._client, name)
        if crd is None or holder(crd, self._address) is not ConversionOwner.OURS:
            return await self._discard(name, now)
        if not configured_by(crd, FIELD_MANAGER):
            # Someone else points the CRD here, to their own rules or to what was left.
            self.forget(name)
            return None
        definition = definition_facts(crd)
        # Its rules end with a CRD that is being deleted, which needs nobody.
        going = definition.terminating
        why = "" if going else still_needed(definition, await has_objects(self._client, definition))
        try:
            if not (why or going):
                await release_conversion(self._client, crd)
                _log.info("%s is no longer converted: its VersionConversion was deleted.", name)
                return _SOON
            bundle = self._bundle()
            if bundle is not None and not trusts(crd, bundle):
                await set_conversion(self._client, crd, self._address, bundle, replace=False)
        except ApiError as error:
            if error.code == 409:
                return _SOON
            if error.code not in (403, 422):
                raise
            why = f"spec.conversion cannot be written: {error.message.rstrip('.')}. {why}".rstrip()
        if why:
            await self._tell(crd, why)
        else:
            self._reported[name] = ""
        return _WAITING

    async def _discard(self, name: str, now: float) -> float | None:
        since = self._released.setdefault(name, now)
        if now - since < _FOLLOWED:
            return _SOON
        self.forget(name)
        try:
            if await delete_bundle(self._client, self._namespace, name):
                _log.info("Deleting the rules of %s: its VersionConversion was deleted.", name)
        except ApiError as error:
            if error.code != 403:
                raise
            _log.warning("The rules of %s cannot be deleted: %s", name, error.message)
        return None

    async def _tell(self, crd: Mapping[str, Any], why: str) -> None:
        name = crd["metadata"]["name"]
        if self._reported.get(name) == why:
            return
        self._reported[name] = why
        note = f"The VersionConversion was deleted, but its last rules are still served. {why}"
        _log.warning("%s: %s", name, note)
        await send_definition_event(self._client, crd, "Warning", REASON, note, instance=self._identity)
