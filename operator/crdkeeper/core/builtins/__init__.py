"""Built-in resources: how the API servers store them, and what follows when that changes."""
