"""A scene for each test of the controller."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crdkeeper.controllers.versionconversion import serving
from crdkeeper.operations import verification
from tests.unit.controllers.versionconversion.scene import (
    Scene,
)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene()

    async def at_once(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    # Virtual time stands still while a thread works.
    monkeypatch.setattr(asyncio, "to_thread", at_once)
    monkeypatch.setattr(serving, "ask_webhook", made.ask)
    monkeypatch.setattr(verification, "GENERATED", 3)
    return made
