"""Why a kubeconfig is not used, although it can be read."""

from typing import Final

MALFORMED: Final = "A kubeconfig is malformed: it is no mapping, or an entry lacks its name."
"""What makes the libraries raise LookupError or AttributeError."""


class KubeconfigError(Exception):
    """It asks for what cannot be done, or not safely; the text is a sentence for people."""
