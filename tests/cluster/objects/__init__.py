"""Compares us with the API server on objects, by the thousand."""
