"""CustomResourceDefinitions: what they say, and what the API server finds wrong with one."""
