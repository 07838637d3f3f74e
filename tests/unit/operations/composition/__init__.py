"""The schemas that Compositions are compiled by."""
