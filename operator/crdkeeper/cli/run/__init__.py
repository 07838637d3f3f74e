"""`crdkeeper run`: the operator."""
