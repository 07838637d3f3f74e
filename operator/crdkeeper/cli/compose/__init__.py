"""`crdkeeper compose`: composite APIs, of which a CompositeResourceDefinition is the beginning."""
