"""The promise in all tests: a version leaves storedVersions only when no object is stored at it."""

import threading
import time
from types import TracebackType
from typing import Self

from tests.cluster.harness.customkind import definition_key
from tests.controlplane.etcd import Etcd

_POLL_SECONDS = 0.03


def assert_trim_is_true(etcd: Etcd, crd: str) -> None:
    """No object of a CRD is stored at a version that is not in its storedVersions, according to etcd."""
    if wrong := untrue(etcd, crd):
        raise AssertionError(wrong)


def untrue(etcd: Etcd, crd: str) -> str:
    """What is wrong with a CRD's storedVersions, or an empty string."""
    plural, _, group = crd.partition(".")
    while True:
        before = stored_versions_on_record(etcd, crd)
        if before is None:
            return ""
        objects = etcd.stored_versions(group, plural)
        # Objects counted while storedVersions changed belong to neither state.
        if stored_versions_on_record(etcd, crd) == before:
            break
    lost = {version: n for version, n in objects.items() if version.partition("/")[2] not in before}
    return f"storedVersions of {crd} is {before}, but etcd holds {lost}" if lost else ""


def stored_versions_on_record(etcd: Etcd, crd: str) -> list[str] | None:
    """status.storedVersions in etcd; None without that CRD."""
    found = etcd.get(definition_key(crd))
    return None if found is None else list(found.get("status", {}).get("storedVersions") or [])


class TrimGuard:
    """Watches CRDs in its own thread, and checks etcd whenever one loses a stored version."""

    def __init__(self, etcd: Etcd) -> None:
        self._etcd = etcd
        self._seen: dict[str, list[str] | None] = {}
        self._violations: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="trim guard", daemon=True)

    def add(self, crd: str) -> None:
        """Watch this CRD from now on."""
        self._seen.setdefault(crd, None)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Fails if a trim was wrong so far, or is now."""
        for crd in list(self._seen):
            self._look(crd)
        assert not self._violations, "\n".join(self._violations)

    def _watch(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            for crd in list(self._seen):
                self._follow(crd)

    def _follow(self, crd: str) -> None:
        try:
            now = stored_versions_on_record(self._etcd, crd)
        except OSError:
            return  # a test that stops etcd checks by itself
        before, self._seen[crd] = self._seen[crd], now
        if before and now is not None and not set(before) <= set(now):
            self._look(crd)

    def _look(self, crd: str) -> None:
        if wrong := untrue(self._etcd, crd):
            self._violations.append(f"{time.strftime('%H:%M:%S')}: {wrong}")
