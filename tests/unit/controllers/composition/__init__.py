"""Compositions and their revisions."""
