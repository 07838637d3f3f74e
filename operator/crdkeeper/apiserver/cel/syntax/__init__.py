"""From an expression's text to its syntax tree."""
