"""The ValidatingWebhookConfiguration by which API servers ask our webhook about changes of CRDs.

manifests/changes has it without webhooks, so that it does nothing; the operator adds the entry while a
DefinitionPolicy wants it, to judge changes or to protect CRDs from deletion. Its path has a token that only
API servers, the operator and the webhook know: whoever may ask about changes can learn from the answers what
objects contain.
"""

import base64
import re
import secrets
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from crdkeeper.cluster.transport.client import APPLY_PATCH, Client, find
from crdkeeper.core.conversion.target import WebhookAddress
from crdkeeper.core.policy.admissionpolicy import API_GOES

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

# To compare both specs may cost more than a condition may.
_SPEC_CHANGES: Final[Json] = {
    "name": "spec-changes",
    "expression": "object == null || oldObject == null || "
    "object.metadata.generation != oldObject.metadata.generation",
}


def operations(*, judging: bool, protecting: bool) -> list[str]:
    """What API servers ask about for policies that judge changes, or that protect CRDs from deletion."""
    return [*(["CREATE"] if judging else ()), "UPDATE", *(["DELETE"] if protecting else ())]


def wanted_entry(
    address: WebhookAddress, bundle: str, token: str, namespace: str, *, judging: bool, protecting: bool
) -> dict[str, Any]:
    """The entry for a webhook that is trusted by that PEM bundle, of an operator in that namespace.

    `judging` and `protecting` say what DefinitionPolicies want: nobody else is to wait for the webhook.
    """
    operator = f"system:serviceaccount:{namespace}:{_OPERATOR}"
    config = address.at(PREFIX + token) | {"caBundle": base64.b64encode(bundle.encode()).decode()}
    return {
        "name": _ENTRY,
        "clientConfig": config,
        "rules": [
            {
                "apiGroups": ["apiextensions.k8s.io"],
                "apiVersions": ["v1"],
                "operations": operations(judging=judging, protecting=protecting),
                "resources": ["customresourcedefinitions"],
                "scope": "Cluster",
            }
        ],
        "matchPolicy": "Equivalent",
        "matchConditions": [
            {
                "name": "others",
                "expression": "(object == null ? oldObject : object).spec.group != 'crdkeeper.dev'",
            },
            # What the operator itself changes, it has judged.
            {"name": "not-by-the-operator", "expression": f"request.userInfo.username != '{operator}'"},
            _SPEC_CHANGES if judging else API_GOES,
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


def operations_of(configuration: Json) -> set[str]:
    """What API servers ask about now."""
    rules = (entry_of(configuration) or {}).get("rules") or ()
    return {operation for each in rules for operation in each.get("operations") or ()}


def token_of(configuration: Json) -> str:
    """The token that API servers send; empty if there is none."""
    config = (entry_of(configuration) or {}).get("clientConfig") or {}
    path = (config.get("service") or {}).get("path") or urlsplit(config.get("url") or "").path
    token = path.removeprefix(PREFIX)
    return token if token != path and _TOKEN.fullmatch(token) else ""


def address_of(configuration: Json) -> WebhookAddress:
    """Where API servers reach the webhook that judges changes; nowhere if there is no entry."""
    config = (entry_of(configuration) or {}).get("clientConfig") or {}
    return WebhookAddress.of(config, PREFIX + token_of(configuration))


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
