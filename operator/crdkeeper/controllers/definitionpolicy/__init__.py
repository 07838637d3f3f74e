"""The controller of DefinitionPolicies."""
