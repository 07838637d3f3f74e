"""CRDs by the thousand, and the comparison of what we and the API server say of each."""
