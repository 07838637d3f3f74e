"""CompositionRevisions."""
