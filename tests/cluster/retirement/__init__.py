"""Versions taken out of service, on the real API server."""
