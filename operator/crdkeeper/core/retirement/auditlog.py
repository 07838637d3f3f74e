"""Who uses a version, by API servers' audit logs: request by request, with the user, in bounded memory.

Whoever impersonates others, and every client about its own user agent, may have any text written there:
bounded here, and escaped where it is printed. Whether a request is one of Kubernetes itself is decided by the
user that the API server has authenticated. A client that calls itself crdkeeper harms only itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from crdkeeper.api.texts import LINE_BYTES, bounded
from crdkeeper.apiserver.golang.times import moment
from crdkeeper.core.conversion.nesting import loads
from crdkeeper.core.retirement.evidence import SHOWN, AuditedUses, Requester, Whose

MOST_REQUESTERS: Final = 2000
"""Users that are counted separately: whoever may impersonate can have any number of names."""
_FEW: Final = 3
"""Programs and namespaces that are named for each user."""
_API_VERSION: Final = "audit.k8s.io/v1"
_COMPLETE: Final = "ResponseComplete"
_READS: Final = frozenset(("get", "list", "watch"))
_FAILED: Final = 400
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_OWN_AGENT: Final = "crdkeeper/"
_KUBERNETES: Final = frozenset(
    (
        "system:apiserver",
        "system:kube-controller-manager",
        *(
            f"system:serviceaccount:kube-system:{each}"
            for each in (
                "disruption-controller",
                "generic-garbage-collector",
                "horizontal-pod-autoscaler",
                "namespace-controller",
                "resourcequota-controller",
                "storage-version-migrator-controller",
            )
        ),
    )
)
"""They take the version that discovery prefers, or that an object names, and another one once it is gone."""

_Key = tuple[str, Whose]


@dataclass(slots=True)
class _Counted:
    reads: int = 0
    writes: int = 0
    last: datetime | None = None
    agents: dict[str, None] = field(default_factory=dict)
    namespaces: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class AuditTally:
    """Reads audit logs line by line, and keeps what is about one version of a resource."""

    group: str
    version: str
    resource: str
    events: int = 0
    unreadable: int = 0
    too_long: int = 0
    _failed: int = 0
    _undated: int = 0
    _first: datetime | None = None
    _last: datetime | None = None
    _newest: datetime | None = None
    _newest_by: str = ""
    _dropped: int = 0
    _counts: dict[_Key, _Counted] = field(default_factory=dict)

    def add(self, line: bytes | None) -> None:
        """Count one line; None is one that is too long."""
        if line is None:
            self.too_long += 1
            return
        if not line.strip():
            return
        try:
            event = loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or (event.get("kind"), event.get("apiVersion")) != (
            "Event",
            _API_VERSION,
        ):
            self.unreadable += 1
            return
        self.events += 1
        time = _time(event)
        if time is not None:
            self._first = min(self._first or time, time)
            self._last = max(self._last or time, time)
        about = _map(event, "objectRef")
        wanted = (self.group, self.version, self.resource)
        same = tuple(about.get(each) for each in ("apiGroup", "apiVersion", "resource")) == wanted
        if same and event.get("stage") == _COMPLETE:
            self._add(event, _text(about, "namespace"), time)

    def _add(self, event: Mapping[str, Any], namespace: str, time: datetime | None) -> None:
        code = _map(event, "responseStatus").get("code")
        if isinstance(code, int) and code >= _FAILED:
            self._failed += 1
            return
        user, whose = _user(event), _whose(event)
        if whose == "client":
            self._undated += time is None
            if time is not None and (self._newest is None or time > self._newest):
                self._newest, self._newest_by = time, user
        counted = self._counts.get((user, whose))
        if counted is None:
            if len(self._counts) >= MOST_REQUESTERS:
                self._forget()
            counted = self._counts[user, whose] = _Counted()
        if _text(event, "verb") in _READS:
            counted.reads += 1
        else:
            counted.writes += 1
        if time is not None:
            counted.last = max(counted.last or time, time)
        _note(counted.agents, _agent(event))
        _note(counted.namespaces, bounded(namespace, LINE_BYTES))

    def _forget(self) -> None:
        """Forget the older half: whoever still uses the version is among the newer ones."""
        newer = sorted(self._counts.items(), key=lambda item: item[1].last or _EARLIEST, reverse=True)
        self._counts = dict(newer[: MOST_REQUESTERS // 2])
        self._dropped += len(newer) - len(self._counts)

    def uses(self) -> AuditedUses:
        """What was counted so far. Users that were forgotten may be counted again."""
        newer = sorted(self._counts.items(), key=lambda item: item[1].last or _EARLIEST, reverse=True)
        newer.sort(key=lambda item: item[0][1] != "client")
        return AuditedUses(
            requesters=tuple(_requester(*each) for each in newer[:SHOWN]),
            requester_count=len(self._counts) + self._dropped,
            newest=self._newest,
            newest_by=self._newest_by,
            events=self.events,
            first=self._first,
            last=self._last,
            failed=self._failed,
            undated=self._undated,
            unreadable=self.unreadable,
            too_long=self.too_long,
        )


def _requester(key: _Key, counted: _Counted) -> Requester:
    user, whose = key
    return Requester(
        user=user,
        whose=whose,
        agents=_few(counted.agents),
        namespaces=_few(counted.namespaces),
        reads=counted.reads,
        writes=counted.writes,
        last=counted.last,
    )


def _user(event: Mapping[str, Any]) -> str:
    name = bounded(_text(_map(event, "user"), "username"), LINE_BYTES)
    other = bounded(_text(_map(event, "impersonatedUser"), "username"), LINE_BYTES)
    return f"{other} (by {name})" if other else name


def _whose(event: Mapping[str, Any]) -> Whose:
    if _text(_map(event, "user"), "username") in _KUBERNETES:
        return "Kubernetes"
    return "crdkeeper" if _agent(event).startswith(_OWN_AGENT) else "client"


def _agent(event: Mapping[str, Any]) -> str:
    """The name and version of the program, without the platform and so on that follow."""
    return bounded(_text(event, "userAgent").partition(" ")[0], LINE_BYTES)


def _note(seen: dict[str, None], text: str) -> None:
    if text and len(seen) <= _FEW:
        seen[text] = None


def _few(seen: Mapping[str, None]) -> tuple[str, ...]:
    return (*islice(seen, _FEW), *(("…",) if len(seen) > _FEW else ()))


def _time(event: Mapping[str, Any]) -> datetime | None:
    """When the request ended: a watch is a use until then."""
    for each in ("stageTimestamp", "requestReceivedTimestamp"):
        try:
            time = moment(_text(event, each))
            if time.tzinfo is not None:
                return time.astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    return None


def _map(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""
