"""Checks of the tree that no linter has; `make lint` runs them."""
