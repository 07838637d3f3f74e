"""Asks our webhook about a change of a CRD as an API server would."""

from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import aiohttp
import orjson

from crdkeeper.api.meta import GROUP
from crdkeeper.cluster.resources.changewebhook import PREFIX
from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.policy.selection import POLICIES_HEADER

_SECONDS: Final = 5.0
_EXAMPLE: Final = {
    "metadata": {"name": f"examples.{GROUP}"},
    "spec": {"group": GROUP, "names": {"plural": "examples", "kind": "Example"}},
}
"""A CRD that no policy judges."""


@dataclass(frozen=True, slots=True)
class JudgingReply:
    """What the webhook answered."""

    policies: str
    """The digest of the policies that it follows."""
    error: str = ""
    """Why there is no answer."""
    admitted: bool = True
    """Whether it knows the token: if not, it answers nothing else."""


async def ask_about_change(address: WebhookAddress, bundle: str, token: str) -> JudgingReply:
    """Ask with that token, trusting that PEM bundle. Failures never raise."""
    uid = str(uuid4())
    review = {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {"uid": uid, "operation": "CREATE", "object": _EXAMPLE},
    }
    try:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(
                f"{address.host}{PREFIX}{token}",
                data=orjson.dumps(review),
                ssl=verifying(ca_data=bundle),
                allow_redirects=False,
            ) as response,
        ):
            content = await response.read()
            if response.status == 404:
                return JudgingReply("", admitted=False)
            if response.status != 200:
                said = content[:300].decode(errors="replace").strip()
                return JudgingReply("", f"HTTP {response.status}: {said}")
            answer = orjson.loads(content)["response"]
            if answer["uid"] != uid or answer["allowed"] is not True:
                return JudgingReply("", "it refuses a change that no policy concerns")
            return JudgingReply(response.headers.get(POLICIES_HEADER, ""))
    except TimeoutError:
        return JudgingReply("", f"no response within {_SECONDS:g} seconds")
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
        return JudgingReply("", " ".join(str(error).split()) or type(error).__name__)
