"""What is wrong with a CRD that the API server accepts."""
