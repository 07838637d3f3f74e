"""The Common Expression Language as Kubernetes 1.37 speaks it in x-kubernetes-validations."""
