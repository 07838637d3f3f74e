"""`crdkeeper finalizers`: which objects finalizers hold in deletion, and their release."""
