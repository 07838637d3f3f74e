"""`crdkeeper status`: which CRDs need a migration, and how the migrations stand."""
