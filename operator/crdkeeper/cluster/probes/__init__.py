"""What we ask of a live CRD: its conversion, its subresources, the census of its objects."""
