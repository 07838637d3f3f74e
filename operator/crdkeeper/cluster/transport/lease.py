"""Leader election with a Lease (coordination.k8s.io/v1), as in client-go's leaderelection.

Own code, because that of `kubernetes.aio` waits without limit for an answer, ends when a connection is
refused and compares wall clocks; a leader that hangs in a request would lead for ever.
"""

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

from crdkeeper.cluster.transport.client import ApiError, Client, Unreachable, find
from crdkeeper.cluster.transport.fence import clock

_log = logging.getLogger(__name__)

_RELEASE_SECONDS = 10.0
"""How long a process that ends waits for its Lease to be released: less than a kubelet waits for it."""
_RELEASES = 5


class LeaseLost(Exception):
    """Another candidate leads, or may lead by now."""


class Lease:
    """One candidate. A holder gives up `renew_deadline` seconds after its last renewal.

    From then on its client sends no writes, also if this process was frozen and nothing has run in between.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry: float = 2.0,
    ) -> None:
        self._client = client
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self.identity = identity
        self._duration = duration
        self._renew_deadline = renew_deadline
        self._retry = retry
        self._seen: tuple[str, float] = ("", 0.0)
        self._holding = False
        self._releasing = False
        self._idle = asyncio.Event()
        """Set while nothing is read or written to acquire or renew it."""
        self._idle.set()
        self._renewed_at = 0.0
        self.contacted_at = time.monotonic()
        """When the API server last answered about the Lease, in monotonic time."""

    async def acquire(self) -> None:
        """Return once we hold the Lease."""
        # The API server has no event to wait for here.
        while not await self._try(self._renew_deadline / 2):  # noqa: ASYNC110
            await asyncio.sleep(self._retry)
        self._holding = True
        _log.info("Leading as %s.", self.identity)

    async def hold(self) -> None:
        """Renew as long as possible. Raises LeaseLost, and then nothing is written by the client any more."""
        try:
            await self._renew()
        except LeaseLost as lost:
            self._client.fence.close(str(lost))
            raise

    async def _renew(self) -> None:
        while True:
            deadline = self._renewed_at + self._renew_deadline
            await asyncio.sleep(min(self._retry, max(0.0, deadline - clock())))
            if self._releasing:
                return
            left = deadline - clock()
            if left <= 0:
                raise LeaseLost(self._too_late)
            await self._try(min(left, self._renew_deadline / 2))

    @property
    def _too_late(self) -> str:
        return f"{self.identity} could not renew the Lease for {self._renew_deadline:.0f} s"

    async def release(self) -> None:
        """Release the Lease if it is ours, so that the next holder need not wait for it to expire.

        Before `acquire` or `hold` is cancelled: what they have sent may still be stored, and would take the
        Lease again. So its answer is awaited; they write no more.
        """
        self._releasing = True
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._idle.wait()
                for left in reversed(range(_RELEASES)):
                    try:
                        await self._give_up()
                        return
                    except ApiError as error:
                        # Written in between, perhaps by a renewal of ours whose answer was late.
                        if error.code != 409 or not left:
                            raise
        except (ApiError, Unreachable, TimeoutError) as error:
            said = str(error) or "no response in time"
            _log.warning("The Lease was not released. If it is ours, it will expire: %s", said)

    async def _give_up(self) -> None:
        lease = await self._read()
        if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
            lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
            await self._client.request("PUT", f"{self._path}/{self._name}", lease)

    async def _try(self, seconds: float) -> bool:
        """Acquire or renew; False if not possible now. Raises LeaseLost if another candidate took it."""
        began = clock()
        self._idle.clear()
        try:
            async with asyncio.timeout(seconds):
                taken = await self._take()
        except (ApiError, Unreachable, TimeoutError) as error:
            if not (isinstance(error, ApiError) and error.code == 409):
                _log.warning("The Lease could not be written: %s", str(error) or "no response in time")
            return False
        finally:
            self._idle.set()
        if taken:
            self._renewed_at = began  # others count from when it was written, which was not earlier
            self._client.fence.close_at(began + self._renew_deadline, self._too_late)
        return taken

    async def _take(self) -> bool:
        lease = await self._read()
        self.contacted_at = time.monotonic()
        if self._releasing:
            return False
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        ours = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._duration),
            "renewTime": now,
        }
        if lease is None:
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self._name},
                "spec": {**ours, "acquireTime": now, "leaseTransitions": 0},
            }
            await self._client.request("POST", self._path, body)
            return True
        spec = lease["spec"]
        holder = spec.get("holderIdentity") or ""
        if holder != self.identity:
            if self._holding:
                raise LeaseLost(f"{holder or 'nobody'} holds the Lease instead of {self.identity}")
            if holder and not self._expired(lease):
                return False
            ours |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        lease["spec"] = {**spec, **ours}
        await self._client.request("PUT", f"{self._path}/{self._name}", lease)
        return True

    def _expired(self, lease: dict[str, Any]) -> bool:
        """Whether the Lease has not changed for its whole duration, by our own clock."""
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, time.monotonic())
        return time.monotonic() - self._seen[1] > float(lease["spec"].get("leaseDurationSeconds") or 0)

    async def _read(self) -> dict[str, Any] | None:
        return await find(self._client, f"{self._path}/{self._name}")
