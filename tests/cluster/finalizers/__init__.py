"""Finalizers of objects in deletion, released on behalf of policies and by the command line."""
