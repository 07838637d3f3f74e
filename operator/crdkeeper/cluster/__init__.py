"""The only code that talks to the API server: each module one subject, no decisions."""
