"""Schemas of CRDs: decoding and structural checks; formats; field paths and their errors."""
