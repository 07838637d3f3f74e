"""Structural schemas of CRDs: what the API server says of an OpenAPI v3 schema."""
