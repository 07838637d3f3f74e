"""What is published of CRDs."""
