"""Expressions that the compile-time half of our CEL engine and the API server must treat alike."""
