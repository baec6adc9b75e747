"""Numerical kernels: pure functions on arrays that know nothing of datasets."""
