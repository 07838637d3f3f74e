"""What a Composition is compiled by: the kinds that the API server serves."""
