"""`crdkeeper convert`: converts objects to another version by rules; admission policies; trials of rules."""
