"""What the operator and the command line both carry out on a cluster: gather, decide by the core, apply."""
