"""Benchmarks: they print a comparison and never fail on a figure, only on a wrong result."""
