"""The API server's rules for CustomResourceDefinitions, a file per subject."""
