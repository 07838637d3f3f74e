"""Changes of CRDs, judged by a worker process."""
