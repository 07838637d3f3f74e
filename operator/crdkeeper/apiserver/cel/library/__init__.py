"""The functions of CEL's and of Kubernetes' libraries, a file per library."""
