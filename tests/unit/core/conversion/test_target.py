"""Who converts a CRD, and what our conversion looks like."""

import base64
from typing import Any

import pytest

from crdkeeper.core.conversion.target import (
    ConversionOwner,
    WebhookAddress,
    conversion_path,
    describe,
    holder,
    serving_address,
    trusts,
    wanted_conversion,
)
from crdkeeper.core.diagnosis.conversionfacts import WebhookFacts

NAME = "things.stable.example.com"
SERVICE = WebhookAddress("crdkeeper-system", "crdkeeper-webhook")
URL = WebhookAddress(url="https://127.0.0.1:9443")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://127.0.0.1:9443", "127.0.0.1"),
        ("https://[::1]:9443", "::1"),
        ("https://[0:0:0:0::1]", "::1"),
        ("https://Webhook.example.com", "webhook.example.com"),
    ],
)
def test_a_certificate_has_the_host_of_a_url(url: str, name: str) -> None:
    """In the form in which certificates are read; otherwise it would be renewed for ever."""
    assert WebhookAddress(url=url).names == (name,)


def crd(conversion: Any) -> dict[str, Any]:
    spec = {"conversion": conversion} if conversion is not None else {}
    return {"metadata": {"name": NAME}, "spec": spec}


def with_config(**config: Any) -> dict[str, Any]:
    return crd({"strategy": "Webhook", "webhook": {"clientConfig": config}})


@pytest.mark.parametrize("address", [SERVICE, URL], ids=str)
def test_what_we_set_is_ours(address: WebhookAddress) -> None:
    found = crd(wanted_conversion(address, NAME, "PEM\n"))
    assert holder(found, address) is ConversionOwner.OURS
    assert trusts(found, "PEM")
    assert not trusts(found, "PEM\nMORE")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (crd(None), ConversionOwner.NOBODY),
        (crd({"strategy": "None"}), ConversionOwner.NOBODY),
        (with_config(url="https://127.0.0.1:9443/convert/" + NAME), ConversionOwner.OTHER),
        (
            with_config(
                service={
                    "namespace": "crdkeeper-system",
                    "name": "crdkeeper-webhook",
                    "path": f"/convert/{NAME}",
                }
            ),
            ConversionOwner.OURS,
        ),
        (
            with_config(
                service={
                    "namespace": "crdkeeper-system",
                    "name": "crdkeeper-webhook",
                    "path": "/convert/other",
                }
            ),
            ConversionOwner.OTHER,
        ),
        (with_config(service={"namespace": "other", "name": "other"}), ConversionOwner.OTHER),
    ],
)
def test_whose_it_is(found: dict[str, Any], expected: ConversionOwner) -> None:
    assert holder(found, SERVICE) is expected


def test_a_bundle_that_is_no_base64_is_not_trusted() -> None:
    assert not trusts(with_config(url="https://a", caBundle="?"), "PEM")
    encoded = base64.b64encode(b"PEM").decode()
    assert trusts(with_config(url="https://a", caBundle=encoded), "PEM")


def test_which_webhook_is_ours_whatever_the_path() -> None:
    assert SERVICE.serves(WebhookFacts("", "crdkeeper-system", "crdkeeper-webhook", 443, b""))
    assert not SERVICE.serves(WebhookFacts("", "other", "crdkeeper-webhook", 443, b""))
    assert not SERVICE.serves(WebhookFacts("https://127.0.0.1:9443/convert/a", "", "", 443, b""))
    assert URL.serves(WebhookFacts("https://127.0.0.1:9443/convert/a", "", "", 443, b""))
    assert not URL.serves(WebhookFacts("https://127.0.0.1:94430/convert/a", "", "", 443, b""))


def test_the_names_that_the_certificate_is_for() -> None:
    assert SERVICE.names[0] == "crdkeeper-webhook.crdkeeper-system.svc"
    assert URL.names == ("127.0.0.1",)


def test_a_webhook_in_words() -> None:
    assert describe(with_config(url="https://a/b")) == "https://a/b"
    assert describe(with_config()) == "a webhook"
    service = {"namespace": "a", "name": "b"}
    assert describe(with_config(service=service)) == "Service a/b:443"
    assert describe(with_config(service=service | {"port": 1, "path": "/c"})) == "Service a/b:1/c"


@pytest.mark.parametrize("address", [SERVICE, URL, WebhookAddress("a", "b", port=9443)])
def test_an_address_is_found_in_what_names_it(address: WebhookAddress) -> None:
    assert WebhookAddress.of(address.client_config("a.b"), conversion_path("a.b")) == address


def test_a_version_conversion_says_where_its_rules_are_served() -> None:
    found: dict[str, Any] = {"metadata": {"name": NAME}}
    for status in (None, {}, {"servedGeneration": 1}, {"clientConfig": {"service": {"name": "b"}}}):
        assert serving_address(found | {"status": status}) == WebhookAddress()
    for each in (SERVICE, URL):
        assert serving_address(found | {"status": {"clientConfig": each.client_config(NAME)}}) == each


def test_what_names_no_webhook_has_no_address() -> None:
    found = WebhookAddress.of({}, conversion_path("a.b"))
    assert found == WebhookAddress()
    for service in ({}, {"name": "b"}, {"namespace": "a", "name": ""}):
        assert WebhookAddress.of({"service": service}, conversion_path("a.b")) == WebhookAddress()
    for each in (with_config(), with_config(url=conversion_path(NAME)), with_config(service=None)):
        assert holder(each, found) is ConversionOwner.OTHER
