"""Requests to the API server: connections, clients, watches, the Lease, the namespaces."""
