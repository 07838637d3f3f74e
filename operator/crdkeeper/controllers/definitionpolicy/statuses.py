"""Writes the policies' status: one write at a time for each policy, and each compared with the one before.

A watch may be late. Compared with what it has shown, a status that leads back to that would not be written,
and what was written in between would stay: but nothing is released before the status has shown why.
"""

import asyncio
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from crdkeeper.api.definitionpolicy import DefinitionPolicy, DefinitionPolicyStatus
from crdkeeper.api.meta import ObjectMeta
from crdkeeper.cluster.resources.kinds import put_status
from crdkeeper.cluster.transport.client import METADATA_ONLY, ApiError, Client


@dataclass(frozen=True, slots=True)
class _Written:
    """The last write of a policy's status that was answered, and whether another came after it."""

    uid: str | None
    version: int = 0
    """The resourceVersion that it led to; 0 if no write was answered that the watch has not shown."""
    status: DefinitionPolicyStatus | None = None
    unanswered: bool = False
    """Whether it is not known if a later status was stored."""


class PolicyStatuses:
    """What this process has written last, of each policy whose watch has not shown it yet."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock is gone as soon as nobody holds it or waits for it."""
        self._written: dict[str, _Written] = {}

    def turn(self, name: str) -> asyncio.Lock:
        """Held by who compares and writes the status of the policy of that name."""
        return self._turns.setdefault(name, asyncio.Lock())

    def busy(self, name: str) -> bool:
        """Whether somebody holds the turn or waits for it."""
        # A lock that was just released is not locked before the next in the line runs.
        return name in self._turns

    def latest(self, policy: DefinitionPolicy) -> DefinitionPolicyStatus:
        """The newest status that is known to be stored: as the policy was seen, or as written since."""
        written = self._unseen(policy)
        if written is None or written.status is None or written.version <= _version(policy.metadata):
            return policy.status
        return written.status

    def shows(self, policy: DefinitionPolicy, status: DefinitionPolicyStatus) -> bool:
        """Whether the API server is known to have this status already."""
        written = self._unseen(policy)
        return not (written is not None and written.unanswered) and status == self.latest(policy)

    def forget(self, name: str) -> None:
        """The policy is gone. Called in its turn, as is `write`: so nothing is left of it."""
        self._written.pop(name, None)

    async def write(self, policy: DefinitionPolicy, status: DefinitionPolicyStatus) -> None:
        """Write it; does nothing if there is no policy of that name. Raises ApiError and Unreachable."""
        name, uid = policy.metadata.name, policy.metadata.uid
        # If no answer comes, it may be stored or not: then even the same is written again.
        former = self._unseen(policy) or _Written(uid)
        self._written[name] = replace(former, unanswered=True)
        updated: DefinitionPolicy = policy.model_copy(update={"status": status})
        try:
            answer = await put_status(self._client, updated, accept=METADATA_ONLY)
        except ApiError as error:
            if error.code == 404:
                return
            raise
        stored = ObjectMeta.model_validate(answer["metadata"])
        self._written[name] = _Written(uid, _version(stored), status)

    def _unseen(self, policy: DefinitionPolicy) -> _Written | None:
        """The last write, unless the policy as it was seen is as new as all that may be stored."""
        name = policy.metadata.name
        written = self._written.get(name)
        if written is None:
            return None
        seen = not written.unanswered and written.version <= _version(policy.metadata)
        if seen or written.uid != policy.metadata.uid:
            del self._written[name]
            return None
        return written


def _version(metadata: ObjectMeta) -> int:
    version = metadata.resource_version
    return int(version) if version and version.isdecimal() else 0
