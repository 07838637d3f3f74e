"""Checks of the tree that no linter knows: `make lint` runs them."""
