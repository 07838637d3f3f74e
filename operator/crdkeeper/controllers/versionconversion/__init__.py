"""The controller of VersionConversions, and of what they need: the webhook's certificate and bundles."""
