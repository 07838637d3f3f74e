"""The maximum cost of an expression, which the API server estimates before it accepts a rule."""
