"""The output of commands: everything from a cluster or a file escaped; tables, SARIF, logs."""
