"""The controller of VersionRetirements."""
