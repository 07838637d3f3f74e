"""CompositeResourceDefinitions: makes their CRDs and keeps them as they are meant to be."""
