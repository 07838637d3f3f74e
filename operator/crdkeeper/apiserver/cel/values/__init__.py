"""The values of expressions: equality, order, arithmetic, time, addresses."""
