"""`make demo`: a migration from start to end on a real API server, as its users see it."""
