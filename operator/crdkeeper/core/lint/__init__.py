"""The linter: what the API server accepts, and what users of a CRD stumble over."""
