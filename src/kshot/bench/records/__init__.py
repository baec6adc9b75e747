"""The records folder: what a record is, where it lies, how it is read, joined and compared."""
