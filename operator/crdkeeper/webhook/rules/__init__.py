"""The rules by which the webhook converts: from bundles in the cluster, or from files."""
