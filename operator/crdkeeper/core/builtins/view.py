"""How all API servers store built-in resources: what each one that was asked has answered, put together.

An API server tells of itself only. Behind a load balancer each connection may lead to another one, and during
an upgrade they differ. Which one has answered shows in a metric if it encrypts: METRIC has the hash of the
server's name, which is the name of its identity Lease. The addresses that API servers advertise name none of
them, but as many addresses as there are Leases are all API servers.
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from crdkeeper.core.migration.observation import ApiServerLease

METRIC = "apiserver_encryption_config_controller_last_config_info"
FORBIDDEN = "forbidden"
"""Why metrics were not read: no permission."""
_LABEL = re.compile(r'(\w+)="([^"\\]{0,200})"')
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class StoredAs:
    """How one API server stores a resource."""

    group: str
    resource: str
    hash: str
    version: str
    """The version at which it stores objects; empty if that is none of those it serves."""

    @property
    def name(self) -> str:
        """`plural`, or `plural.group`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class EncryptedBy:
    """The encryption configuration of one API server."""

    server: str
    """Identifies the API server by the hash of its name; empty if it has no configuration."""
    hash: str


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What the API server at the end of one connection says."""

    stored: Sequence[StoredAs]
    configuration: EncryptedBy | None
    """None if its metrics cannot be read."""
    unread: str = ""
    """Why they cannot; FORBIDDEN if they may not."""
    address: str = ""
    """The address that it advertises; empty if unknown."""
    has_metric: bool = False
    """Whether its release is known to have METRIC, and its metrics were looked at: without it, such a server
    does not encrypt."""


@dataclass(frozen=True, slots=True)
class View:
    """All answers together."""

    stored: Mapping[str, Sequence[StoredAs]]
    """By resource: how it is stored, once for each way that was found."""
    partial: frozenset[str]
    """Resources that not all who were asked serve."""
    configurations: Sequence[str] | None
    """The hashes of the encryption configurations; empty where a server has none. None if one is unknown."""
    unasked: Sequence[str] = ()
    """API servers, by their Leases, of which no configuration was seen although others have one."""
    servers: int = 0
    """Number of API servers that hold a Lease; 0 if unknown."""
    unread: str = ""
    """Why metrics cannot be read; FORBIDDEN if they may not."""
    unencrypted: bool = False
    """Whether it is certain that no API server encrypts."""

    def hashes(self, name: str) -> str:
        """The storage version hashes of a resource; several, separated by commas, while servers differ."""
        found = {each.hash for each in self.stored[name]}
        return ",".join(sorted(found | ({"none"} if name in self.partial else set())))

    def configuration(self) -> str | None:
        """The encryption configurations' hashes, separated by commas; None if not all are known."""
        found = self.configurations
        if found is None or not found:
            return None
        if len(found) > 1:
            return ",".join(each or "none" for each in found)
        return None if self.unasked else found[0]


def version_of(hash: str, group: str, kind: str, versions: Iterable[str]) -> str:
    """The version whose storageVersionHash this is; empty if none of them.

    Only to be shown: API servers may compute it in another way some day.
    """
    for each in versions:
        digest = sha256(f"{group}/{each}/{kind}".encode()).digest()
        if base64.b64encode(digest[:8]).decode() == hash:
            return each
    return ""


def configuration_in(line: str) -> EncryptedBy | None:
    """The encryption configuration in a line of an API server's metrics; None if there is none."""
    if not line.startswith(METRIC + "{"):
        return None
    labels = dict(_LABEL.findall(line[:1000]))
    server, hash = labels.get("apiserver_id_hash", ""), labels.get("hash", "")
    return EncryptedBy(server, hash.removeprefix("sha256:")[:_SHOWN]) if server and hash else None


def is_behind(line: str) -> bool:
    """Whether metrics that begin with this line are behind METRIC: families are sorted by name."""
    return line.startswith("# TYPE ") and line[7:300].partition(" ")[0] > METRIC


def together(answers: Sequence[ServerAnswer], leases: Sequence[ApiServerLease] | None, now: datetime) -> View:
    """Combine the answers of the API servers that were asked, some of them perhaps twice."""
    stored: dict[str, dict[str, StoredAs]] = {}
    answered: dict[str, int] = {}
    for answer in answers:
        for each in answer.stored:
            stored.setdefault(each.name, {})[each.hash] = each
            answered[each.name] = answered.get(each.name, 0) + 1
    found = [each.configuration for each in answers]
    known = [each for each in found if each is not None]
    live = [each for each in leases or () if each.expires_at > now]
    seen = {each.server for each in known}
    unasked = [each.name for each in live if server_hash(each.name) not in seen] if any(seen) else []
    return View(
        {name: [each for _, each in sorted(ways.items())] for name, ways in stored.items()},
        frozenset(name for name, number in answered.items() if number < len(answers)),
        sorted({each.hash for each in known}) if len(known) == len(found) else None,
        unasked,
        len(live),
        next((each.unread for each in answers if each.unread), ""),
        bool(live) and all(map(_without_encryption, answers)) and complete(answers, leases, now),
    )


def _without_encryption(answer: ServerAnswer) -> bool:
    return answer.has_metric and answer.configuration is not None and not answer.configuration.server


def server_hash(name: str) -> str:
    """How metrics name the API server that holds the Lease of that name."""
    return f"sha256:{sha256(name.encode()).hexdigest()}"


def complete(answers: Sequence[ServerAnswer], leases: Sequence[ApiServerLease] | None, now: datetime) -> bool:
    """Whether it is certain that each API server was asked."""
    if leases is None:
        return False
    live = [each for each in leases if each.expires_at > now]
    if len(live) <= 1:
        return bool(answers)
    seen = {each.configuration.server for each in answers if each.configuration is not None}
    if any(seen):
        return all(server_hash(each.name) in seen for each in live)
    return len({each.address for each in answers if each.address}) >= len(live)
