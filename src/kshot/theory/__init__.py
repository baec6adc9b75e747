"""The study's results as functions: closed forms here, one Monte Carlo check per claim in `checks`."""
