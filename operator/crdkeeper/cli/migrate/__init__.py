"""`crdkeeper migrate`: one migration now, without the operator."""
