"""What commands read: options, files and folders, YAML with the lines that things are on."""
