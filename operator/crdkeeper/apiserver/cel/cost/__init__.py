"""What an expression can cost at most, as the API server estimates it before it accepts a rule."""
