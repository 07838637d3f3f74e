"""kubectl as a function, for what tests do to a cluster as its users."""

import os
import subprocess
import time
from pathlib import Path

_ESTABLISHED_SECONDS = 120.0
_OPENAPI_SECONDS = 120.0
NO_OPENAPI = "error validating data: the server is currently unable to handle the request"
"""What kubectl says of a busy API server before it has written anything."""


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
        """kubectl's output. Without `check` a failure doesn't raise; its error text is returned, too.

        A busy API server may have no OpenAPI document for a moment (503). kubectl reads it to validate an
        object before it writes it, so it is asked again.
        """
        deadline = time.monotonic() + _OPENAPI_SECONDS
        while True:
            done = subprocess.run(
                [*self._as(kubeconfig or self._kubeconfig), *args],
                check=False,
                input=input,
                stdin=subprocess.DEVNULL if input is None else None,
                capture_output=True,
                text=True,
                env={**os.environ, "KUBERC": "off"},
            )
            if NO_OPENAPI not in done.stderr or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        if check and done.returncode:
            raise KubectlError(f"kubectl {' '.join(args)}: status {done.returncode}\n{done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def wait_established(self, *crds: str) -> None:
        """Returns when these CRDs (`crd/NAME`) are served.

        `kubectl wait` alone fails for one that is too new to have conditions, and it ends before the API
        server lists the kind to its clients: until then, kubectl knows no such kind.
        """
        deadline = time.monotonic() + _ESTABLISHED_SECONDS
        names = {each.removeprefix("crd/") for each in crds}
        while True:
            try:
                self("wait", "--for=condition=Established", f"--timeout={_ESTABLISHED_SECONDS:.0f}s", *crds)
                listed = self("api-resources", "--output=name").split()
                if names <= {*listed}:
                    return
                if time.monotonic() > deadline:
                    raise KubectlError(f"not listed: {names - {*listed}}")
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
