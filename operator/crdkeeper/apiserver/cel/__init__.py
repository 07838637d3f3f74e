"""The Common Expression Language as Kubernetes 1.37 implements it for x-kubernetes-validations."""
