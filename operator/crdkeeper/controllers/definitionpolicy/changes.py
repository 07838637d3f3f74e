"""Has API servers ask our webhook about changes and deletions of CRDs while a DefinitionPolicy wants that.

The ValidatingWebhookConfiguration comes from manifests/changes without webhooks. This adds our entry, keeps
it as it should be whoever else changes it, and takes it off when no policy wants it any more. Policies that
protect CRDs from deletion do without, where manifests/changes is not applied.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from crdkeeper.api.definitionpolicy import DefinitionPolicy
from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.probes.changewebhook import ask_about_change
from crdkeeper.cluster.resources.changewebhook import (
    NAME,
    apply_entry,
    entry_of,
    find_configuration,
    new_token,
    operations,
    operations_of,
    token_of,
    wanted_entry,
)
from crdkeeper.cluster.resources.kinds import list_policies
from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable
from crdkeeper.controllers.state import ClusterState
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.policy.reading import why_unread
from crdkeeper.core.policy.selection import guarding, guarding_digest, protecting

_log = logging.getLogger(__name__)

_SETTLED_SECONDS: Final = 60.0
"""Until another look whether somebody has changed the configuration, and whether the webhook answers."""
_SOON_SECONDS: Final = 3.0
_TOGETHER_SECONDS: Final = 0.2
_KIND: Final = "ValidatingWebhookConfiguration"
_REMEDY: Final = "`kubectl apply --server-side -k manifests/changes`"
_RULE: Final = (
    '{apiGroups: ["admissionregistration.k8s.io"], resources: ["validatingwebhookconfigurations"], '
    f'resourceNames: ["{NAME}"], verbs: ["get", "patch"]}}'
)
_TOKEN_RULE: Final = (
    '{apiGroups: ["admissionregistration.k8s.io"], resources: ["validatingwebhookconfigurations"], '
    f'resourceNames: ["{NAME}"], verbs: ["list", "watch"]}}'
)
_POLICY_RULE: Final = (
    f'{{apiGroups: ["{GROUP}"], resources: ["{DefinitionPolicy.plural}"], verbs: ["list", "watch"]}}'
)
BEGINNING: Final = "the operator has not looked yet"
_ISSUING: Final = "the webhook's certificate is being issued"
_UNUSED: Final = "manifests/changes are not applied, and no policy needs them"


class ChangeGuard:
    """Keeps the entry, and knows why changes are not judged."""

    def __init__(
        self,
        client: Client,
        state: ClusterState,
        address: WebhookAddress,
        namespace: str,
        told: Callable[[], None],
    ) -> None:
        """Calls `told` when `trouble` has changed."""
        self.trouble = BEGINNING
        """Why the webhook judges no change; empty if it does."""
        self.looked = False
        """Whether this process has found that out. Until then, the webhook goes on as it did before."""
        self._client = client
        self._state = state
        self._address = address
        self._namespace = namespace
        self._told = told
        self._woken = asyncio.Event()
        self._policies = "", False
        """The policies when they last changed; what we write into their status is no change."""
        state.listen(self._saw)

    def _saw(self, kind: str, _: str) -> None:
        if kind == DefinitionPolicy.plural:
            known = self._state.of(DefinitionPolicy).values()
            policies = guarding_digest(known), bool(protecting(known))
            if policies == self._policies:
                return
            self._policies = policies
        elif kind != "trust":
            return
        self._woken.set()

    async def run(self) -> None:
        """Run until cancelled."""
        # The last policy may have gone while nobody ran.
        while True:
            self._woken.clear()
            try:
                trouble = await self._ensure()
            except (ApiError, Unreachable) as error:
                trouble = f"the configuration cannot be kept: {error}"
            if trouble != self.trouble:
                self.trouble = trouble
                self.looked = self.looked or trouble not in (BEGINNING, _ISSUING)
                _log.info("Changes of CRDs: %s", trouble or "the webhook judges them")
                self._told()
            try:
                async with asyncio.timeout(_pause(trouble)):
                    await self._woken.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(_TOGETHER_SECONDS)

    async def _ensure(self) -> str:
        """Have the configuration as the policies want it. Returns why changes are not judged."""
        policies = list(self._state.of(DefinitionPolicy).values())
        judging, protects = guarding(policies), bool(protecting(policies))
        unneeded = _UNUSED if protects else BEGINNING
        try:
            found = await find_configuration(self._client)
        except ApiError as error:
            if error.code != 403:
                raise
            self._trusted(None)
            if not judging:
                return unneeded
            return f"the operator may not read the {_KIND} {NAME}. {_REMEDY} grants {_RULE}"
        if found is None:
            self._trusted(None)
            return f"there is no {_KIND} {NAME}. {_REMEDY} creates it" if judging else unneeded
        asked, judges = operations_of(found), bool(judging)
        if asked - {*operations(judging=judges, protecting=protects)} or (
            entry_of(found) is not None and not (judging or protects)
        ):
            # At the start not all policies may be known yet; without the entry, nothing would be judged.
            stored = await list_policies(self._client)
            if stored is None:
                # One that has just started serves no CRDs yet.
                return "the API server does not know DefinitionPolicies"
            judging, protects = guarding(stored), bool(protecting(stored))
            unread = any(map(why_unread, stored))
            if unread and not (judging or protects):
                return "a DefinitionPolicy cannot be read, so that it is not known whether one wants that"
            judges = bool(judging) or (unread and "CREATE" in asked)
            protects = protects or (unread and "DELETE" in asked)
        if not (judging or protects):
            self._trusted(None)
            refused = await self._apply(found, None) if entry_of(found) is not None else ""
            return refused or BEGINNING
        bundle = self._state.trust.bundle
        if bundle is None:
            self._want_certificate()
            return self._state.trust.problem or _ISSUING
        token = token_of(found) or new_token()
        wanted = wanted_entry(
            self._address, bundle, token, self._namespace, judging=judges, protecting=protects
        )
        if entry_of(found) != wanted:
            refused = await self._apply(found, wanted)
            if refused:
                return refused
        self._trusted(bundle)
        reply = await ask_about_change(self._address, bundle, token)
        if reply.error:
            return f"{self._address} does not respond: {reply.error}"
        if not reply.admitted:
            return f"{self._address} has not read the {_KIND} {NAME} yet. {_REMEDY} grants it {_TOKEN_RULE}"
        if reply.policies != guarding_digest(judging):
            return f"{self._address} has not read the policies yet. {_REMEDY} grants it {_POLICY_RULE}"
        return ""

    async def _apply(self, found: dict[str, Any], entry: dict[str, Any] | None) -> str:
        """Have that entry. Returns why that is refused; empty if it is not."""
        try:
            await apply_entry(self._client, found, entry)
        except ApiError as error:
            if error.code == 409:
                return "another client changes the configuration"
            if error.code != 403:
                raise
            self._trusted(None)
            return f"the operator may not write the {_KIND} {NAME}. {_REMEDY} grants {_RULE}"
        _log.info("%s the entry of the %s %s.", "Wrote" if entry else "Removed", _KIND, NAME)
        return ""

    def _want_certificate(self) -> None:
        """Have the webhook's certificate issued, though perhaps no VersionConversion needs one."""
        if not self._state.trust.wanted:
            self._state.trust.wanted = True
            self._state.trust_changed()

    def _trusted(self, bundle: str | None) -> None:
        """Have a new CA wait for the configuration; for none that we cannot keep, as conversions need one."""
        trust = self._state.trust
        if trust.configured != bundle:
            trust.configured = bundle
            self._state.trust_changed()


def _pause(trouble: str) -> float | None:
    """In how many seconds to look again; None if no policy wants that."""
    if trouble == BEGINNING:
        return None
    return _SOON_SECONDS if trouble and trouble != _UNUSED else _SETTLED_SECONDS
