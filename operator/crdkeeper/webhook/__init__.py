"""The conversion webhook: a stateless server, without which the API server could not read an object."""
