"""`crdkeeper webhook`: the conversion webhook."""
