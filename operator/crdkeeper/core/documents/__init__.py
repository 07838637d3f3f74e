"""Reads YAML and JSON like kubectl."""
