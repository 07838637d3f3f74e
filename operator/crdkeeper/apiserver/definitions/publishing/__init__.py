"""What the API server publishes of a CRD in OpenAPI v2 and v3, which kubectl and other clients read."""
