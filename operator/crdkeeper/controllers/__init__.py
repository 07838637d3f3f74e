"""One subject each: gather what is so, decide by `core`, apply. Kopf is not known here."""
