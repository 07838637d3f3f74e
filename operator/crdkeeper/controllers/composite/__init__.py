"""Composites: creates, changes and deletes the objects that they stand for."""
