"""What we and the API server say of objects, by the thousand."""
