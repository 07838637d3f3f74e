"""Servers that check their clients' deadlines often, so that tests need not wait, and workers with time."""

import pytest

from crdkeeper.webhook.conversion import worker
from crdkeeper.webhook.http import http1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "_TICK_SECONDS", 0.02)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long to start a worker, and to give it its CPU time."""
    for each in ("_WAIT_SECONDS", "_WORK_SECONDS"):
        monkeypatch.setattr(worker, each, 120.0)
