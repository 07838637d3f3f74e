"""The migration protocol as decisions; docs/migration.md tells what it proves and why."""
