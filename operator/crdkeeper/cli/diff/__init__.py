"""`crdkeeper diff`: whom a change of CRDs affects."""
