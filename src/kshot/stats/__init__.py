"""Paired differences and intervals; the input is a table."""
