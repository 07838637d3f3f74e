"""Schemas of CRDs: read and checked for structure; formats; paths of fields and what is wrong at them."""
