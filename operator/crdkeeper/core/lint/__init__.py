"""The linter: what the API server rejects, and what causes problems for users of a CRD."""
