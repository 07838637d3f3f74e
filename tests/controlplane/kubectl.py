"""kubectl as a function, for what tests do to a cluster as its users."""

import os
import subprocess
import time
from pathlib import Path

_ESTABLISHED_SECONDS = 60.0


class KubectlError(RuntimeError):
    """kubectl failed; the message contains the command and its output."""


class Kubectl:
    """Runs kubectl against one cluster, isolated from the user's own settings and caches."""

    def __init__(self, program: Path, *, kubeconfig: Path, cache: Path) -> None:
        self._program = program
        self._kubeconfig = kubeconfig
        self._cache = cache

    def __call__(
        self, *args: str, input: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> str:
        """kubectl's output. Without `check` a failure doesn't raise; its error text is returned, too."""
        done = subprocess.run(
            [*self._as(kubeconfig or self._kubeconfig), *args],
            check=False,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            env={**os.environ, "KUBERC": "off"},
        )
        if check and done.returncode:
            raise KubectlError(f"kubectl {' '.join(args)}: status {done.returncode}\n{done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def wait_established(self, *crds: str) -> None:
        """Returns when these CRDs (`crd/NAME`) are served.

        `kubectl wait` alone fails for one that is too new to have conditions.
        """
        deadline = time.monotonic() + _ESTABLISHED_SECONDS
        while True:
            try:
                self("wait", "--for=condition=Established", f"--timeout={_ESTABLISHED_SECONDS:.0f}s", *crds)
                return
            except KubectlError as error:
                if "accessor error" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    @property
    def command(self) -> list[str]:
        """The first words of this user's command lines."""
        return self._as(self._kubeconfig)

    def _as(self, kubeconfig: Path) -> list[str]:
        return [str(self._program), f"--kubeconfig={kubeconfig}", f"--cache-dir={self._cache}"]
