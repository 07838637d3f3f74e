"""Compositions: compiled by the schemas of the cluster, and copied into CompositionRevisions."""
