"""The resources of the API server that we read and write, one file each."""
