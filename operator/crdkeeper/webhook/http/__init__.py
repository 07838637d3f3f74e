"""The webhook's lean HTTP server, and its limits for clients."""
