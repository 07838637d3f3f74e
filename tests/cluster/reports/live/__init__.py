"""What the tests of the reports' live conditions share."""
