"""What we ask about a live CRD: its conversion, its subresources, the census of its objects."""
