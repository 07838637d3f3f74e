"""Generators of the pages in docs/ that come from the code: `make generate`."""
