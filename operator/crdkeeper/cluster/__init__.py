"""The only code that talks to the API server: one subject per module, no decisions."""
