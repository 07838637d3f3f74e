"""By which proxy a server is reached: Go's http.ProxyFromEnvironment has answered the same to each case."""

import pytest

from crdkeeper.core.kubeconfig.error import KubeconfigError
from crdkeeper.core.kubeconfig.proxies import check_proxy, proxy_of

PROXY = "http://proxy:3128"


def by_proxy(server: str, exempt: str) -> bool:
    return proxy_of(server, None, {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": exempt}) is not None


@pytest.mark.parametrize(
    ("environment", "server", "found"),
    [
        ({}, "https://a.example.com", None),
        ({"HTTPS_PROXY": PROXY}, "https://a.example.com", PROXY),
        ({"https_proxy": PROXY}, "https://a.example.com", PROXY),
        ({"HTTPS_PROXY": "", "https_proxy": PROXY}, "https://a.example.com", PROXY),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, "https://a.example.com", PROXY),
        ({"HTTPS_PROXY": PROXY}, "http://a.example.com", None),
        ({"HTTP_PROXY": PROXY}, "http://a.example.com", PROXY),
        ({"HTTP_PROXY": PROXY}, "https://a.example.com", None),
        ({"ALL_PROXY": PROXY}, "https://a.example.com", None),
        ({"HTTPS_PROXY": "proxy:3128"}, "https://a.example.com", PROXY),
        ({"HTTPS_PROXY": "me:secret@proxy"}, "https://a.example.com", "http://me:secret@proxy"),
        ({"HTTPS_PROXY": "socks5://proxy"}, "https://a.example.com", "socks5://proxy"),
    ],
)
def test_the_proxy_of_the_environment(environment: dict[str, str], server: str, found: str | None) -> None:
    assert proxy_of(server, None, environment) == found
    assert proxy_of(server, "", environment) == found
    assert proxy_of(server, "https://named", {**environment, "NO_PROXY": "*"}) == "https://named"


@pytest.mark.parametrize(
    "server",
    [
        "https://localhost:6443",
        "http://127.0.0.1",
        "https://127.9.9.9:6443",
        "https://[::1]:6443",
        "https://[::ffff:127.0.0.1]",
    ],
)
def test_this_machine_is_reached_without(server: str) -> None:
    assert not by_proxy(server, "")


@pytest.mark.parametrize(
    ("entry", "exempt", "others"),
    [
        ("*", "https://a.example.com https://10.0.0.1 https://[fd00::1]", ""),
        ("example.com", "https://example.com https://a.b.Example.com", "https://anexample.com"),
        (".example.com", "https://a.example.com", "https://example.com"),
        ("*.example.com", "https://a.example.com", "https://example.com"),
        ("*example.com", "", "https://a.example.com"),
        ("Example.COM", "https://a.example.com", ""),
        ("example.com:443", "https://a.example.com https://example.com:443", "https://example.com:6443"),
        ("example.com:80", "http://a.example.com", "https://a.example.com"),
        (".example.com:6443", "https://a.example.com:6443", "https://a.example.com"),
        ("10.0.0.1", "https://10.0.0.1 https://10.0.0.1:6443 https://[::ffff:10.0.0.1]", "https://10.0.0.2"),
        ("10.0.0.1:443", "https://10.0.0.1", "https://10.0.0.1:6443"),
        ("10.0.0.0/8", "https://10.9.9.9:6443", "https://11.0.0.1 https://[fd00::1] https://a.example.com"),
        ("10.0.0.5/8", "https://10.9.9.9", ""),
        ("10.0.0.0/33", "", "https://10.0.0.0"),
        ("10.0.0.0/255.0.0.0", "", "https://10.0.0.1"),
        ("fd00::1", "https://[fd00::1] https://[fd00::1]:6443", "https://[fd00::2]"),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", "https://[fd00::1]"),
        ("fd00::/8", "https://[fd00::1]", "https://[fe00::1]"),
        ("kubernetes", "https://kubernetes", "https://kubernetes.default"),
        (":443", "", "https://a.example.com"),
        (" a , example.com , ", "https://a https://example.com", "https://b"),
    ],
)
def test_servers_are_exempt(entry: str, exempt: str, others: str) -> None:
    assert [each for each in exempt.split() if by_proxy(each, entry)] == []
    assert [each for each in others.split() if not by_proxy(each, entry)] == []


@pytest.mark.parametrize("proxy", [PROXY, "https://me:secret@[fd00::1]:3128/", "http://proxy"])
def test_proxies_that_can_be_used(proxy: str) -> None:
    check_proxy(proxy)


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("socks5://me:secret@proxy:1080", "'socks5://proxy:1080'"),
        ("proxy:3128", "'proxy://'"),
        ("me:secret@proxy", "'me://'"),
        ("http://", "'http://'"),
        ("http://me:secret@proxy:none", "malformed"),
        ("http://me:secret@[proxy", "malformed"),
    ],
)
def test_others_are_named_without_a_password(proxy: str, words: str) -> None:
    with pytest.raises(KubeconfigError, match=words) as raised:
        check_proxy(proxy)
    assert "secret" not in str(raised.value)
