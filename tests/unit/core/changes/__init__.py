"""What is said of a changed CRD."""
