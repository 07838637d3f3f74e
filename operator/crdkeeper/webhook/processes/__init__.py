"""The webhook in several processes: a parent, a keeper of what all of them need, and those that serve."""
