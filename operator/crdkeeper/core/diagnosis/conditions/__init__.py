"""The conditions of a DefinitionReport, one file each: its reasons, and the function that chooses one."""
