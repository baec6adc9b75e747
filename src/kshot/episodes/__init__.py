"""Splits, support draws and the evidence guard."""
