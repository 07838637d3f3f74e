"""Rewrites what defines composite APIs in other projects as crdkeeper's."""
