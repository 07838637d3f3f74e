"""A distance between clients and API server: `godelay` between them, the same for all contestants."""

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.benchmark import goprograms
from tests.controlplane.pki import LOOPBACK
from tests.controlplane.ports import Ports
from tests.controlplane.processes import Process


class Distance:
    """An address at which the API server at `url` answers `milliseconds` later; with 0, nothing is between.

    Raises BuildFailed if there is a distance but no Go.
    """

    def __init__(self, milliseconds: float, *, url: str, directory: Path) -> None:
        self.milliseconds = milliseconds
        self._ports = Ports()
        self._port = self._ports.take()
        self._process: Process | None = None
        if milliseconds:
            flags = {
                "listen": f"{LOOPBACK}:{self._port}",
                "target": urlsplit(url).netloc,
                "delay": f"{milliseconds / 2}ms",
            }
            program = goprograms.build("godelay") / "delay"
            self._process = Process("delay", program, flags, directory=directory, ready=self._listens)

    def kubeconfig(self, near: Path) -> Path:
        """A copy of a kubeconfig: for the far end of the distance; without a distance, the file itself."""
        if self._process is None:
            return near
        config = json.loads(near.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://{LOOPBACK}:{self._port}"
        far = near.with_suffix(".far.kubeconfig")
        far.touch(mode=0o600)
        far.write_text(json.dumps(config, indent=2))
        return far

    def __enter__(self) -> Self:
        if self._process is not None:
            self._process.start()
            self._process.wait_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.stop()
        self._ports.close()

    def _listens(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self._port), timeout=1).close()
        except OSError:
            return False
        return True
