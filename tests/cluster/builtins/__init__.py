"""Built-in resources on real API servers whose encryption keys rotate."""
