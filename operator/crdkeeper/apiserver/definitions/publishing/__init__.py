"""What the API server publishes of a CRD in OpenAPI v2 and v3, for kubectl and other clients."""
