"""The conditions of a DefinitionReport, a file for each: its reasons, and what decides between them."""
