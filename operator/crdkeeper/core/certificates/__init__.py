"""When the webhook's certificates are made, changed over and dropped, so that no request fails meanwhile."""
