"""Compares us with the API server on CEL: what compiles, its cost, its results."""
