"""Shared by the tests of the reports' live conditions."""
