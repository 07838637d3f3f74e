"""CompositeResourceDefinitions and the CRDs that are made of them, on a real API server."""
