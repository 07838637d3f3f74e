"""How a new CRD affects users of the old one. Pure: no I/O, no clock."""
