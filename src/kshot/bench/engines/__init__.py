"""Ways to run the missing cells of a study."""
