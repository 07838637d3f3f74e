"""The lean HTTP server of the webhook, and what it allows its clients."""
