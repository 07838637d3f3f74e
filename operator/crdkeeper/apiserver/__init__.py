"""The behaviour of the API server of Kubernetes 1.37 in pure Python, without a server."""
