"""The resources of the API server that we read and write, a file for each."""
