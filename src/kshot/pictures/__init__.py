"""Pictures in folders → head → predict, export, serve."""
