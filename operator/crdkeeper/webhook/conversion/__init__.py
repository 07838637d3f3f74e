"""Answers to ConversionReviews: immediately, or by a worker process with a time limit."""
