"""Builds the container image without Docker and without a registry, the same bits each time."""
