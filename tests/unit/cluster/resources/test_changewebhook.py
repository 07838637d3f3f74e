"""The entry of the webhook for changes of CRDs, as API servers accept it."""

import pytest

from crdkeeper.apiserver.dnsnames import subdomain_errors
from crdkeeper.cluster.resources.changewebhook import PREFIX, new_token, token_of, wanted_entry
from crdkeeper.core.conversion.target import WebhookAddress

SERVICE = WebhookAddress(namespace="crdkeeper-system", service="crdkeeper-webhook")


@pytest.mark.parametrize("address", [SERVICE, WebhookAddress(url="https://w.example.com:9443")])
def test_the_token_is_found_in_the_entry(address: WebhookAddress) -> None:
    token = new_token()
    assert token_of({"webhooks": [wanted_entry(address, "", token, "crdkeeper-system")]}) == token


def test_each_segment_of_a_path_at_a_service_is_a_subdomain() -> None:
    for _ in range(100):
        entry = wanted_entry(SERVICE, "", new_token(), "crdkeeper-system")
        segments = entry["clientConfig"]["service"]["path"].removeprefix("/").split("/")
        assert [error for each in segments for error in subdomain_errors(each)] == []


@pytest.mark.parametrize("token", ["", "guessed", "A" * 48, "a" * 47, "a" * 48 + "/"])
def test_a_token_of_another_form_does_not_count(token: str) -> None:
    config = {"service": {"path": PREFIX + token}}
    assert token_of({"webhooks": [{"name": "changes.crdkeeper.dev", "clientConfig": config}]}) == ""
