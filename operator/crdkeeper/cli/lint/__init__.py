"""`crdkeeper lint`: problems with CRDs for the API server and for users."""
