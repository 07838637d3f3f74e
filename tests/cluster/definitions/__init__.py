"""What we and the API server say of CRDs: on create, on update, in OpenAPI, by the thousand."""
