"""The webhook's certificates: made, read back, kept in Secrets."""
