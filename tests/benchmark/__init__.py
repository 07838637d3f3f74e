"""Benchmarks: they print a comparison, and fail only for a wrong result, never for a figure."""
