"""What all tests share: the fixtures that give them a real control plane."""

import signal

pytest_plugins = ["tests.controlplane.fixtures"]


def pytest_configure() -> None:
    """Have commands end at Ctrl-C, which a shell makes those in its background ignore, and their children."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
