"""JSONPath as the API server and kubectl read it: parsed to nodes, and evaluated on an object."""
