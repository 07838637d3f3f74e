"""The API server's rules for CustomResourceDefinitions, one file per subject."""
