"""Answers to ConversionReviews: at once, or by a worker process under a time limit."""
