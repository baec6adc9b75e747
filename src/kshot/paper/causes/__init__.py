"""Causes: where two runs differ, found from their cells or from printed claims."""
