"""CustomResourceDefinitions: their content, and the errors that the API server finds in them."""
