"""What a new CRD would do to the objects that exist: predicted one by one, counted and judged."""
