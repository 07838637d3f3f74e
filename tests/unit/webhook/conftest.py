"""Servers that check their clients' deadlines often, so that tests need not wait."""

import pytest

from crdkeeper.webhook.http import http1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "_TICK_SECONDS", 0.02)
