"""`crdkeeper upgrade-manifest`: a CRD of v1beta1 rewritten for v1."""
