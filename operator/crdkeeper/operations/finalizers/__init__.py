"""Finalizers of objects in deletion: find what is held, and release it, for the operator and the CLI."""
