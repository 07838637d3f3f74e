"""What people type for a resource, and the suggestions if it does not exist."""

import pytest

from crdkeeper.api.storagemigration import GroupResource
from crdkeeper.core.resourcenames import ServedResource, parse_resource, suggest

SERVED = [
    ServedResource("", "pods", "pod", "Pod", ("po",)),
    ServedResource("", "secrets", "secret", "Secret"),
    ServedResource("apps", "deployments", "deployment", "Deployment", ("deploy",)),
    ServedResource("cert-manager.io", "certificates", "certificate", "Certificate", ("cert", "certs")),
    ServedResource("networking.internal.knative.dev", "certificates", "certificate", "Certificate"),
    ServedResource("example.com", "widgets", "widget", "Widget"),
]


@pytest.mark.parametrize(
    ("text", "group", "plural"),
    [
        ("widgets.example.com", "example.com", "widgets"),
        ("Widgets.Example.com", "example.com", "widgets"),
        ("secrets", "", "secrets"),
    ],
)
def test_a_resource_is_its_plural_and_its_group(text: str, group: str, plural: str) -> None:
    assert parse_resource(text) == GroupResource(group=group, resource=plural)


@pytest.mark.parametrize("text", ["", "widgets/status", "widgets.example.com.", ".example.com", "a b", "1s"])
def test_what_cannot_be_a_resource_is_told_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"PLURAL\.GROUP") as caught:
        parse_resource(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("widget.example.com", "widgets.example.com"),  # the singular
        ("widgets", "widgets.example.com"),  # without its group
        ("widgets.example", "widgets.example.com"),  # with a part of it
        ("deploy", "deployments.apps"),  # a short name
        ("certs.cert-manager.io", "certificates.cert-manager.io"),
        ("certificate.networking", "certificates.networking.internal.knative.dev"),
        ("secret", "secrets"),
        ("wigdets.example.com", "widgets.example.com"),  # misspelled
        ("widgets.exmaple.com", "widgets.example.com"),
        ("gateways.example.org", None),
    ],
)
def test_what_was_probably_meant(wanted: str, meant: str | None) -> None:
    assert suggest(wanted, SERVED) == meant


def test_the_order_of_discovery_does_not_matter() -> None:
    assert suggest("certificate", SERVED) == suggest("certificate", SERVED[::-1])
