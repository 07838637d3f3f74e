"""The entry of the webhook for changes of CRDs, as API servers accept it."""

from typing import Any

import pytest
import yaml

from crdkeeper.apiserver.dnsnames import subdomain_errors
from crdkeeper.cluster.resources.changewebhook import (
    PREFIX,
    address_of,
    new_token,
    operations_of,
    token_of,
    wanted_entry,
)
from crdkeeper.core.conversion.target import WebhookAddress
from tests.cluster.harness.installation import MANIFESTS

SERVICE = WebhookAddress(namespace="crdkeeper-system", service="crdkeeper-webhook")


def entry(address: WebhookAddress, token: str) -> dict[str, Any]:
    return wanted_entry(address, "", token, "crdkeeper-system", judging=True, protecting=True)


@pytest.mark.parametrize(
    "address",
    [
        SERVICE,
        WebhookAddress("other", "webhook", port=9443),
        WebhookAddress(url="https://w.example.com:9443"),
        WebhookAddress(url="https://[fd00::1]"),
    ],
)
def test_token_and_address_are_found_in_the_entry(address: WebhookAddress) -> None:
    token = new_token()
    found = {"webhooks": [entry(address, token)]}
    assert (token_of(found), address_of(found)) == (token, address)


@pytest.mark.parametrize("found", [{}, {"webhooks": None}, {"webhooks": [{"name": "other.example.com"}]}])
def test_without_the_entry_there_is_neither(found: dict[str, Any]) -> None:
    assert (token_of(found), address_of(found)) == ("", WebhookAddress())


def test_each_segment_of_a_path_at_a_service_is_a_subdomain() -> None:
    for _ in range(100):
        made = entry(SERVICE, new_token())
        segments = made["clientConfig"]["service"]["path"].removeprefix("/").split("/")
        assert [error for each in segments for error in subdomain_errors(each)] == []


@pytest.mark.parametrize("token", ["", "guessed", "A" * 48, "a" * 47, "a" * 48 + "/"])
def test_a_token_of_another_form_does_not_count(token: str) -> None:
    config = {"service": {"path": PREFIX + token}}
    assert token_of({"webhooks": [{"name": "changes.crdkeeper.dev", "clientConfig": config}]}) == ""


@pytest.mark.parametrize(
    ("judging", "protecting", "asked"),
    [
        (True, True, {"CREATE", "UPDATE", "DELETE"}),
        (True, False, {"CREATE", "UPDATE"}),
        (False, True, {"UPDATE", "DELETE"}),
    ],
)
def test_only_what_policies_want_is_asked(judging: bool, protecting: bool, asked: set[str]) -> None:
    made = wanted_entry(SERVICE, "", new_token(), "crdkeeper", judging=judging, protecting=protecting)
    assert operations_of({"webhooks": [made]}) == asked
    names = {each["name"] for each in made["matchConditions"]}
    assert names == {"others", "not-by-the-operator", "spec-changes" if judging else "api-goes"}


def test_what_takes_an_api_away_is_as_in_the_manifests() -> None:
    documents = yaml.safe_load_all((MANIFESTS / "operator" / "protection.yaml").read_text())
    written = next(documents)["spec"]["matchConditions"]
    made = wanted_entry(SERVICE, "", new_token(), "crdkeeper", judging=False, protecting=True)
    (ours,) = (each for each in made["matchConditions"] if each["name"] == "api-goes")
    assert ours in written
