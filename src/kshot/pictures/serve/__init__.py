"""A web page and a JSON API for a head, on one's own machine first."""
