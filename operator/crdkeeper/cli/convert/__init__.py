"""`crdkeeper convert`: objects at another version, by rules; admission policies; rules tried."""
