"""CompositionRevisions: which one a Composition needs, which may go; and the status of a Composition."""
