"""Schemas before and after a change, and whether the API server confirms our assessment of the change."""
