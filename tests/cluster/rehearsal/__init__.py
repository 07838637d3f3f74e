"""Changes of CRDs, objects for them, and what really happens then, to compare with the prediction."""
