"""The webhook's certificates: created, parsed, kept in Secrets."""
