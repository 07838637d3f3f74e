"""`crdkeeper rehearse`: what a new CRD would do to the objects that exist."""
