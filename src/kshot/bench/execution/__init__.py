"""A run: the work that is missing, handed to workers by an engine, written cell by cell."""
