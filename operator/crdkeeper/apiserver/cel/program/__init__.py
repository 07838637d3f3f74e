"""Errors found when a checked expression becomes a program: literals and constant calls."""
