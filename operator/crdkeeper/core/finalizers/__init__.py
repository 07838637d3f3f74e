"""Objects that finalizers hold: who wrote them last, and which of the named finalizers is released."""
