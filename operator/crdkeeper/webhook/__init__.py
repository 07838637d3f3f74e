"""The conversion webhook: a stateless server that the API server needs to read an object."""
