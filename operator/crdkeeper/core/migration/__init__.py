"""The migration protocol as decisions; docs/migration.md explains what it proves and why."""
