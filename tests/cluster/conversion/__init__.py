"""Conversion by rules on a real API server: the webhook, its certificate, VersionConversions."""
