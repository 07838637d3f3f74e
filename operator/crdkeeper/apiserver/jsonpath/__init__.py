"""JSONPath as the API server and kubectl implement it: parsed to nodes, and evaluated on an object."""
