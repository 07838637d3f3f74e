"""What the API server publishes of CRDs in OpenAPI, next to what we say that it publishes."""
