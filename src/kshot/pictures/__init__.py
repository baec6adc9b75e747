"""One's own pictures → head → predict, explain, export, serve."""
