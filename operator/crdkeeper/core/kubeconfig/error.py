"""Why a kubeconfig is not used, although it can be read."""


class KubeconfigError(Exception):
    """It asks for what cannot be done, or not safely; the text is a sentence for people."""
