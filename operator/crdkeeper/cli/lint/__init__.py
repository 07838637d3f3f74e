"""`crdkeeper lint`: what the API server and users would say of CRDs."""
