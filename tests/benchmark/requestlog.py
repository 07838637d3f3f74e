"""Counts the requests of some users by the API server's audit log."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
_LEASES: Final = "leases"
_REVIEWS: Final = "accessreviews"
_DRY: Final = "dryRun=All"


class RequestLog:
    """The audit log of a control plane, which has to be started with `flags`."""

    def __init__(self, directory: Path, users: Sequence[str]) -> None:
        self._log = directory / "audit.log"
        policy = directory / "audit-policy.json"
        rules = [{"level": "Metadata", "users": list(users)}, {"level": "None"}]
        policy.write_text(
            json.dumps(
                {
                    "apiVersion": "audit.k8s.io/v1",
                    "kind": "Policy",
                    "omitStages": ["RequestReceived", "ResponseStarted"],
                    "rules": rules,
                }
            )
        )
        self.flags = {
            "audit-policy-file": str(policy),
            "audit-log-path": str(self._log),
            "audit-log-maxsize": "10000",
        }
        self._read = 0
        self._counts: dict[str, Counter[str]] = {}

    def counts(self, user: str) -> Counter[str]:
        """How many requests a user has made so far, by verb and resource; without those for Leases."""
        if self._log.exists():
            with self._log.open("rb") as log:
                log.seek(self._read)
                for line in log:
                    if not line.endswith(b"\n"):
                        break
                    self._read += len(line)
                    self._take(json.loads(line))
        return Counter(self._counts.get(user, ()))

    def _take(self, event: dict[str, object]) -> None:
        of, user = event.get("objectRef") or {}, event["user"]
        assert isinstance(of, dict) and isinstance(user, dict)
        if of.get("resource") == _LEASES:
            return
        name = "/".join(filter(None, (of.get("resource", "other"), of.get("subresource"))))
        verb = "review" if name.endswith(_REVIEWS) else event["verb"]
        if _DRY in str(event["requestURI"]):
            verb = f"try {verb}"
        self._counts.setdefault(user["username"], Counter())[f"{verb} {name}"] += 1


def writes(counts: Counter[str]) -> int:
    """Those that change something; Events count, too."""
    return sum(number for what, number in counts.items() if what.partition(" ")[0] in _WRITES)
