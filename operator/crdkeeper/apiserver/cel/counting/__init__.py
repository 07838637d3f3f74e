"""What an evaluation costs the API server, counted step by step as cel-go's interpreter does."""
