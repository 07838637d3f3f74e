"""Rules and objects whose cost lies at the limits of the API server."""
