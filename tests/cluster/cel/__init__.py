"""What we and the API server say of CEL: what compiles, what it costs, what comes out."""
