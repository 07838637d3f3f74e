"""What all tests share: the fixtures that give them a real control plane."""

pytest_plugins = ["tests.controlplane.fixtures"]
