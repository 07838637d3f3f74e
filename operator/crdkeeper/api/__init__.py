"""The kinds of `crdkeeper.dev`, as pydantic models: what users write and what they read back.

The lowest layer: it imports nothing else of crdkeeper. The YAML in `crds/` is generated from here.
"""
