"""Schemas before and after a change, and whether the API server bears out what is said of the change."""
