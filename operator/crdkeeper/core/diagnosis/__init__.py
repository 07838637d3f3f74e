"""Facts about one CRD → conditions: small pure functions, one file per condition."""
