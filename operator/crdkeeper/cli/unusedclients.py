"""Keeps clients of Kubernetes that no command uses out of the process: they take 9 MiB.

`import kubernetes.aio` imports the synchronous client, too, and Kopf imports pykube-ng if that is installed.
With them come requests, OAuth and WebSockets.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_PACKAGE = "kubernetes"
_USED = "aio"


class _Later(Loader):
    """Loads a module when something in it is asked for.

    importlib's LazyLoader does so even if only its name is, as by `inspect` of all modules.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def exec_module(self, module: ModuleType) -> None:
        """Do not load it yet."""

        def find(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            del module.__dict__["__getattr__"]
            self._loader.exec_module(module)
            return getattr(module, name)

        module.__dict__["__getattr__"] = find


class _Finder(MetaPathFinder):
    """Finds the parts of the package, other than the one that is used."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for all other modules."""
        package, _, part = fullname.rpartition(".")
        if package != _PACKAGE or part == _USED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)
        return spec


def leave_out_unused_clients() -> None:
    """Call it before they are imported, in a process that runs one command."""
    sys.meta_path.insert(0, _Finder())
    # As if it were not installed.
    sys.modules.setdefault("pykube", None)  # type: ignore[arg-type]  # the import system does the same
