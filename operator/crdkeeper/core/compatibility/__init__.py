"""What a new CRD does to those who relied on the old one. Pure: no I/O, no clock."""
