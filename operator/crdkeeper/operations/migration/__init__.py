"""One storage migration: the loop, one pass over all objects, and a migration without the operator."""
