"""What the API server of Kubernetes 1.37 would say, in Python: pure, and without a server."""
