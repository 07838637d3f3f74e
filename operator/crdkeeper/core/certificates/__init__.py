"""When the webhook's certificates are created, rotated and dropped, without failing any request."""
