"""Features that people already have on disk, read without running anything in them."""
