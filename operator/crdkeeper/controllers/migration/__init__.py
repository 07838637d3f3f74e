"""Carrying out a StorageMigration: the shell around `core.migration`, the same for operator and CLI."""
