"""What both the operator and the command line do to a cluster: gather facts, let the core decide, apply."""
