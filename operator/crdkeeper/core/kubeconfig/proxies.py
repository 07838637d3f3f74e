"""Through which proxy requests go: that of the kubeconfig, or that of the environment as Go reads it."""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from crdkeeper.core.kubeconfig.error import KubeconfigError

_PORTS: Final = {"http": 80, "https": 443}


def proxy_of(server: str, named: str | None, environment: Mapping[str, str]) -> str | None:
    """The proxy for requests to that URL, None if they go straight. `named` is the kubeconfig's `proxy-url`.

    Without one, the variables HTTPS_PROXY (or HTTP_PROXY, for a server without TLS) and NO_PROXY count, like
    for Go's http.ProxyFromEnvironment.
    """
    if named:
        return named
    url = urlsplit(server)
    found = _first(environment, f"{url.scheme}_proxy")
    if not found or _exempt(url.hostname or "", url.port or _PORTS.get(url.scheme), environment):
        return None
    return found if "://" in found else f"http://{found}"


def check_proxy(proxy: str) -> None:
    """Raise KubeconfigError, without the password, if it is none that aiohttp can use."""
    try:
        url = urlsplit(proxy)
        usable = url.scheme in _PORTS and url.hostname and url.port != 0
    except ValueError:
        raise KubeconfigError("The URL of the proxy (proxy-url, or HTTPS_PROXY) is malformed.") from None
    if not usable:
        shown = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
        raise KubeconfigError(
            f"The proxy {shown!r} (proxy-url, or HTTPS_PROXY) cannot be used: only http:// and https:// can."
        )


def _first(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _exempt(host: str, port: int | None, environment: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (each.strip().lower() for each in _first(environment, "no_proxy").split(","))
    return any(_covers(each, host, address, str(port)) for each in entries if each)


def _covers(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: str) -> bool:
    """Whether an entry of NO_PROXY is for that server."""
    if entry == "*":
        return True
    if (network := _network(entry)) is not None:
        return address is not None and address in network
    name, _, only = entry.rpartition(":")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    elif not name or ":" in name:
        name, only = entry, ""
    if only not in ("", port):
        return False
    if (named := _address(name)) is not None:
        return named == address
    name = name[1:] if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _network(text: str) -> IPv4Network | IPv6Network | None:
    if not text.partition("/")[2].isdecimal():
        return None  # Python would take an address, and one with a netmask
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
