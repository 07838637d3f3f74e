"""`crdkeeper compose`: composite APIs, which start with a CompositeResourceDefinition."""
