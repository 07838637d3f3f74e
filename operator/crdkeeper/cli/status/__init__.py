"""`crdkeeper status`: which CRDs need a migration, and the state of the migrations."""
