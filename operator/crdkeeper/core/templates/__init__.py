"""Compositions: templates with expressions, compiled once, and rendered to the objects of a composite."""
