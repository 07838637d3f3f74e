"""The ValidatingWebhookConfiguration by which API servers ask our webhook about changes of CRDs.

manifests/changes has it without webhooks, so that it does nothing; the operator adds the entry while a
DefinitionPolicy wants it. Its path has a token that only API servers, the operator and the webhook know:
whoever may ask about changes can learn from the answers what objects contain.
"""

import base64
import re
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from crdkeeper.cluster.transport.client import APPLY_PATCH, Client, find
from crdkeeper.core.conversion.target import WebhookAddress

NAME: Final = "crdkeeper-changes"
PREFIX: Final = "/changes/"
"""Of the path at which the webhook answers; the rest is the token."""
COLLECTION: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_PATH: Final = f"{COLLECTION}/{NAME}"
_ENTRY: Final = "changes.crdkeeper.dev"
_TOKEN_BYTES: Final = 24
_TOKEN: Final = re.compile(rf"[0-9a-f]{{{2 * _TOKEN_BYTES}}}")
"""For the path at a Service, API servers accept only lower case."""
_TIMEOUT_SECONDS: Final = 2
_OPERATOR: Final = "crdkeeper-operator"

Json = Mapping[str, Any]


def wanted_entry(address: WebhookAddress, bundle: str, token: str, namespace: str) -> dict[str, Any]:
    """The entry for a webhook that is trusted by that PEM bundle, of an operator in that namespace."""
    operator = f"system:serviceaccount:{namespace}:{_OPERATOR}"
    config = address.at(PREFIX + token) | {"caBundle": base64.b64encode(bundle.encode()).decode()}
    return {
        "name": _ENTRY,
        "clientConfig": config,
        "rules": [
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["customresourcedefinitions"],
                "scope": "Cluster",
            }
        ],
        "matchPolicy": "Equivalent",
        "matchConditions": [
            {"name": "others", "expression": "object.spec.group != 'crdkeeper.dev'"},
            # What the operator itself changes, it has judged.
            {"name": "not-by-the-operator", "expression": f"request.userInfo.username != '{operator}'"},
            # To compare both specs may cost more than a condition may.
            {
                "name": "spec-changes",
                "expression": "oldObject == null || "
                "object.metadata.generation != oldObject.metadata.generation",
            },
        ],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {},
        "objectSelector": {},
    }


def entry_of(configuration: Json) -> Json | None:
    """Our entry as it is; None if there is none."""
    found = configuration.get("webhooks") or ()
    return next((each for each in found if each.get("name") == _ENTRY), None)


def token_of(configuration: Json) -> str:
    """The token that API servers send; empty if there is none."""
    config = (entry_of(configuration) or {}).get("clientConfig") or {}
    path = (config.get("service") or {}).get("path") or urlsplit(config.get("url") or "").path
    token = path.removeprefix(PREFIX)
    return token if token != path and _TOKEN.fullmatch(token) else ""


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_hex(_TOKEN_BYTES)


async def find_configuration(client: Client) -> dict[str, Any] | None:
    """The configuration; None if there is none. Raises ApiError and Unreachable."""
    return await find(client, _PATH)


async def apply_entry(client: Client, configuration: Json, entry: Json | None) -> None:
    """Have exactly this entry, or none, in the configuration that was read.

    Raises ApiError (409: read again).
    """
    metadata = configuration["metadata"]
    pinned = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    body: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, **pinned},
        **({"webhooks": [entry]} if entry is not None else {}),
    }
    query = f"?fieldManager={NAME}&force=true"
    await client.request("PATCH", _PATH + query, body, content_type=APPLY_PATCH)
