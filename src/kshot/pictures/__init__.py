"""One's own pictures → head → predictions, a file for elsewhere, a small server."""
