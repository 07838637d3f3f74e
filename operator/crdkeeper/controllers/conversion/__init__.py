"""What the VersionConversion controller does in steps."""
