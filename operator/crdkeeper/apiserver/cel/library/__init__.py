"""The functions of CEL's and Kubernetes' libraries, one file per library."""
