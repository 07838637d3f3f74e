"""What the composer does about a CompositeResourceDefinition: the next step, and what is said of it."""
