"""In a deletion: makes earlier requests for the CRD harmless, which may still be on their way.

A composer that was frozen, or that got no answer, may have sent a request to delete or to release the CRD.
Such a request names the resourceVersion at which it was decided. But a decision to keep the CRD for now,
because a composite was created or the policy has changed, would leave that resourceVersion as it is.
"""

from collections.abc import Mapping
from typing import Any

from crdkeeper.cluster.resources.composites import claim_crd
from crdkeeper.cluster.transport.client import Client


class Claims:
    """The CRDs of definitions in deletion which this process has claimed: no older request has an effect."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._claimed: dict[str, str] = {}
        """The uid of the CRD by its name."""

    async def claim(self, crd: Mapping[str, Any]) -> None:
        """Claim a CRD, if it is not yet. Raises ApiError; 409 if the CRD changed."""
        name, uid = crd["metadata"]["name"], crd["metadata"]["uid"]
        if self._claimed.get(name) != uid:
            await claim_crd(self._client, crd)
            self._claimed[name] = uid

    def forget(self, name: str) -> None:
        """A request for the CRD may have got lost, or the CRD is gone."""
        self._claimed.pop(name, None)
