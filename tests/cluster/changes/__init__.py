"""DefinitionPolicies that judge changes of CRDs."""
