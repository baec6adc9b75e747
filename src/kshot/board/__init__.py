"""Submissions of outside methods: written, checked, recomputed, and shown on a page."""
