"""Storage migrations and policies on a real API server."""
