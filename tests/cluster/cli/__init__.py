"""The command line as a process, against a real API server."""
