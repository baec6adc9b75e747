"""A web page and a JSON API for a head, on this machine unless a token is given."""
