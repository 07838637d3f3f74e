"""CRDs by the thousand, and the comparison of our result with the API server's for each."""
