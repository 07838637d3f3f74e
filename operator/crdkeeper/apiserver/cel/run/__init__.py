"""Evaluation: a checked expression compiled to closures, and objects bound to its variables."""
