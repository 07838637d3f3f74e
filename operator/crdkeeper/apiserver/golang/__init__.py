"""What Go's standard library does where the API server's answers show it, each thing once."""
