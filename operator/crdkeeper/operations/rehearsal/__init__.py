"""A rehearsal on a cluster: the new definition under another name, and each object tried on it."""
