"""A rehearsal on a cluster: the new definition under another name, on which each object is tried."""
