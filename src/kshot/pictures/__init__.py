"""Pictures in folders → head → predict, explain, export, serve."""
