"""The input of commands: options, files and directories, and YAML with line numbers."""
