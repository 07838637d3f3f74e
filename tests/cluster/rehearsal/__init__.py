"""Changes of CRDs, objects for them, and what then really happens, to compare with what was predicted."""
