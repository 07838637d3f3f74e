"""The types of expressions: declarations, signatures, the checker."""
