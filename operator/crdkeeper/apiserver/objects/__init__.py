"""Custom objects and their schema: pruning, defaulting and validation, on create and on update."""
