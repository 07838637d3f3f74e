"""What commands print: everything from a cluster or a file made visible; tables, SARIF, logs."""
