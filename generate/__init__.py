"""Generators of the pages of docs/ that come from the code: `make generate`."""
