"""Conversion between the versions of a CRD by rules, compiled once, losing nothing."""
