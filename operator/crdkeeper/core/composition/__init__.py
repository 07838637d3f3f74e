"""Composite APIs: the CRD for a CompositeResourceDefinition, and the definition's errors."""
