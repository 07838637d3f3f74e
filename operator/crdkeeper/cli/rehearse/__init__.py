"""`crdkeeper rehearse`: what a new CRD would do to existing objects."""
