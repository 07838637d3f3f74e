"""A CRD of apiextensions.k8s.io/v1beta1 rewritten for v1, with the decisions left to a person."""
