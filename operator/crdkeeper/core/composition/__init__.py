"""Composite APIs: the CRD that a CompositeResourceDefinition stands for, and what is wrong with one."""
