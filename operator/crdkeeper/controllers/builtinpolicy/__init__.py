"""The controller of BuiltinPolicies."""
