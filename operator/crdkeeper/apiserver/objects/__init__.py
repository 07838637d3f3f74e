"""Custom objects under a schema: pruned, defaulted, validated, on create and on update."""
