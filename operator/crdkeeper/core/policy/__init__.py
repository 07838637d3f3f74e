"""What a DefinitionPolicy selects, and what follows from that."""
