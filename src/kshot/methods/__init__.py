"""One classifier per file; `registry` finds them by name."""
