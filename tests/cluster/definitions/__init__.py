"""Compares us with the API server on CRDs: on create, on update, in OpenAPI, by the thousand."""
