"""Calls our conversion webhook as an API server would: over TLS with the CRD's bundle, and with a review."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import aiohttp
import orjson

from crdkeeper.cluster.transport.tls import verifying
from crdkeeper.core.conversion.bundle import RULES_HEADER
from crdkeeper.core.conversion.target import WebhookAddress

_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """What the webhook returned for some objects."""

    digest: str
    objects: Sequence[Any]
    error: str = ""
    """Why there is no answer, or what it said about an object that it could not convert."""


async def ask_webhook(
    address: WebhookAddress, name: str, bundle: str, version: str, objects: Sequence[Any]
) -> WebhookReply:
    """Ask the webhook to convert objects of the CRD `name` to `group/version`. Failures never raise."""
    uid = str(uuid4())
    review = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": uid, "desiredAPIVersion": version, "objects": list(objects)},
    }
    try:
        context = verifying(ca_data=bundle or None)
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(
                f"{address.host}/convert/{name}",
                data=orjson.dumps(review),
                ssl=context,
                allow_redirects=False,
            ) as response,
        ):
            content = await response.read()
            digest = response.headers.get(RULES_HEADER, "")
            if response.status != 200:
                said = content[:300].decode(errors="replace").strip()
                return WebhookReply(digest, (), f"HTTP {response.status}: {said}")
            answer = orjson.loads(content)["response"]
            result = answer["result"]
            if answer["uid"] != uid or result["status"] != "Success":
                return WebhookReply(digest, (), str(result.get("message")))
            return WebhookReply(digest, answer["convertedObjects"])
    except TimeoutError:
        return WebhookReply("", (), f"no response within {_SECONDS:g} seconds")
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError) as error:
        return WebhookReply("", (), " ".join(str(error).split()) or type(error).__name__)
