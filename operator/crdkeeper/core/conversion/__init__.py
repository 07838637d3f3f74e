"""Conversion between the versions of a CRD by rules, which are compiled once and lose nothing."""
