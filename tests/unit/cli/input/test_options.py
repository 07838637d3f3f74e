"""Addresses as flags have them."""

import click
import pytest

from crdkeeper.cli.input.options import listen_address
from crdkeeper.cli.run.command import WEBHOOK_URL


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9443", ("", 9443)),
        ("9443", ("", 9443)),
        ("0.0.0.0:9443", ("0.0.0.0", 9443)),
        ("[::]:9443", ("::", 9443)),
        ("[::1]:8443", ("::1", 8443)),
        ("[fe80::1%eth0]:8443", ("fe80::1%eth0", 8443)),
        ("localhost:0", ("localhost", 0)),
    ],
)
def test_an_address_to_listen_on(text: str, address: tuple[str, int]) -> None:
    assert listen_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "::1:8443",
        "[::1]",
        "[::1:8443",
        "[]:80",
        "[localhost]:80",
        "a:b",
        "a:",
        ":65536",
        ":²",
        ":-1",
    ],
)
def test_what_is_no_address_to_listen_on(text: str) -> None:
    with pytest.raises(click.BadParameter) as error:
        listen_address(text)
    assert error.value.param_hint == "--listen"


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://webhook.example.com", True),
        ("https://10.0.0.1:9443", True),
        ("https://[::1]:9443", True),
        ("https://[fd00::1]", True),
        ("https://::1:9443", False),
        ("https://[]:9443", False),
        ("https://[a]/:9443", False),
        ("http://10.0.0.1", False),
        ("https://a/b", False),
    ],
)
def test_a_url_of_the_webhook(url: str, good: bool) -> None:
    assert bool(WEBHOOK_URL.fullmatch(url)) is good
