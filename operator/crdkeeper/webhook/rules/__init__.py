"""The rules that the webhook converts by: from bundles in the cluster, or from files."""
