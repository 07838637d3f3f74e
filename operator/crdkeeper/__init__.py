"""crdkeeper keeps a cluster's custom resource definitions over their whole life."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("crdkeeper")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+source"
