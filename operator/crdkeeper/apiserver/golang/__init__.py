"""Behaviour of Go's standard library that the API server's answers show, each part once."""
