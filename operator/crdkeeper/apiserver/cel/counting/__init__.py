"""The exact cost of an evaluation for the API server, counted step by step like cel-go's interpreter."""
