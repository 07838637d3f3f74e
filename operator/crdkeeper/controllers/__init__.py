"""Controllers, each for one subject: gather the facts, let `core` decide, apply. Independent of Kopf."""
