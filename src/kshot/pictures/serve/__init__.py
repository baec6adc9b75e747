"""A head behind a small web page and a JSON API, for one's own machine first."""
