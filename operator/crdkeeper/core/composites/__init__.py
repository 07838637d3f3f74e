"""What becomes of one composite: which objects are applied, removed and reported."""
