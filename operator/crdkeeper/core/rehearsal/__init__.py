"""What a new CRD would do to existing objects: predicted one by one, counted and judged."""
