"""The controller of StorageMigrations."""
