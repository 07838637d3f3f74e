"""crdkeeper manages a cluster's CustomResourceDefinitions throughout their lifecycle."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("crdkeeper")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+source"
