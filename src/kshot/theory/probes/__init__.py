"""Probes: measurements on features of what the closed forms predict."""
