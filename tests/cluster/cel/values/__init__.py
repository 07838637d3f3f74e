"""Expressions whose values our CEL engine and the API server must agree on."""
