"""Compares what the API server publishes of CRDs in OpenAPI with our prediction."""
