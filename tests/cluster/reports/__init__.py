"""DefinitionReports of live CRDs."""
